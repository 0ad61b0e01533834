"""A command pattern against a command: what an allow rule may be sure of, what a strict rule has to suspect.

The door of this room is `patterns.CommandPattern`.
"""
