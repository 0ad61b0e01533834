"""Trying policies on generated requests, and comparing rules without any.

trial, tree          a fresh session; a simulated disk
drafting, hazards    requests generated from policies; what programs can be made to do besides
standins, covering   a few actions for all that a rule can match; whether a rule holds wherever another does
"""
