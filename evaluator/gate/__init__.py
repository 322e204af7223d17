"""The static gate: the cheap first line, and a help to honest agents.

Two profiles of rules, as data (`profiles/open.yaml`, `profiles/seed.yaml`), over the Python tree and over
the C++/CUDA tokens inside its strings.
Invariant: a scan never imports or runs what it scans, and no guarantee rests on it.
Not for: correctness, timing, or the sandbox.
"""

from evaluator.gate.policy import Policy, PolicyRow, load_policy, parse_policy
from evaluator.gate.report import Advisory, Finding, GateReport, Severity
from evaluator.gate.scan import scan, scan_native
from evaluator.gate.source import check_source, has_entry, imports_module, read_source, syntax_error

PROFILES = ("open", "seed")

__all__ = [
    "PROFILES",
    "Advisory",
    "Finding",
    "GateReport",
    "Policy",
    "PolicyRow",
    "Severity",
    "check_source",
    "has_entry",
    "imports_module",
    "load_policy",
    "parse_policy",
    "read_source",
    "scan",
    "scan_native",
    "syntax_error",
]
