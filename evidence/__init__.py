"""What was shown: measured artefacts, the programs in `evidence/bench/` that make them, analysis over records.

Invariant: every file names its command, fingerprint, device and seed, and its figures can be recomputed from the raw
trials beside it. Not for: deciding anything in a run.
"""
