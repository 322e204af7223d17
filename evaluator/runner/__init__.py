"""The small program that runs a reference or a candidate inside its sandbox.

Mounted alone (as `evaluator.runner`, standard library and torch only): nothing else of Ratchet is
visible in there. Reference and candidate run in the very same code. Nothing in here decides
anything: the clock, the inputs' choice, the answer and the comparison live in other processes.
"""
