"""Widgets that paint lines: text blocks, row lists, the event log, the trend plot.

Invariant: a widget holds no state of the run, only the lines it was given and where the cursor is.
Not for: choosing what to say.
"""
