"""What is remembered: the journal, the state folded from it, its projection, the world model.

Imports `evaluator.records` and nothing else of ours.
"""
