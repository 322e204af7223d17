"""What is to be made fast: problem formats, the registry, the manifest and the built-in problems.

Invariant: importing any module of this package never loads torch; only functions of
`problems.workload` (and what they call) do, inside the evaluator's processes.
Not for: deciding anything about a candidate. The judge lives in `evaluator`.
"""
