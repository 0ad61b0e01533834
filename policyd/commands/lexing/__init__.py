"""Text before it means anything: the source made fit, plain words and lists, quotes, the words of a pattern.

Nothing here knows what a shell or a program does with a word.
"""
