"""Where candidate code runs: bubblewrap, seccomp filters, limits and the handle of one sandboxed process.

Invariant: there is no unsandboxed path. What cannot be confined on this machine is an `EnvironmentFault`.
Not for: what runs inside (`evaluator.runner`) or what is measured.
"""
