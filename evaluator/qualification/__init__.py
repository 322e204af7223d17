"""Qualification: controls that show what the evaluator refuses, and a naive evaluator that believes them.

Invariant: every exploit control states what it must get with the static gate on and off, and counts
only where the naive evaluator is taken in by it.
Not for: judging candidates.
"""
