"""What a text does when a shell runs it: plain lists in `flat`, everything else over the tree in `grammar`.

`execute` is where every simple command arrives, from either.
"""
