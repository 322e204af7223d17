"""Committed seccomp filters, `<profile>-<architecture>.bpf`, and the program that makes them.

Invariant: the bytes are what `generate.py` prints with libseccomp; a test regenerates and compares.
Not for: reading the filters (that is `evaluator.sandbox.seccomp`).
"""
