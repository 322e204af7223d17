"""An outside scanner's opinion, where it is installed: KernelGuard's `sol-execbench` profile.

Measured on public audited kernels it flags about one hack in twenty, so it is advice: `flag` reports
it, `reject` lets it refuse, `off` never loads it.
Invariant: absent or failing, it changes nothing; the fingerprint says whether it was there.
Not for: any guarantee.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

from evaluator.errors import UsageError
from evaluator.gate.outside import NOT_INSTALLED
from evaluator.gate.report import Advisory

MODES = ("off", "flag", "reject")
MAX_CHARACTERS = 200_000
TIMEOUT_S = 10.0
"""Its patterns backtrack; neither a long text nor one made for it may stall the judge."""
_PROFILE = "sol-execbench"
_SCANNER = "kernelguard"


def advise(source: str, *, mode: str, timeout_s: float = TIMEOUT_S) -> Advisory | None:
    """The scanner's classification of a source; None where it is off or not installed."""
    if mode not in MODES:
        raise UsageError(f"unknown advisory mode {mode!r}", f"use one of: {', '.join(MODES)}")
    if mode == "off":
        return None
    if len(source) > MAX_CHARACTERS:
        return Advisory(scanner=_SCANNER, classification="skipped: too long")
    command = [sys.executable, "-P", "-B", str(Path(__file__).with_name("outside.py")), _PROFILE]
    try:
        done = subprocess.run(command, input=source.encode("utf-8", "replace"), capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Advisory(scanner=_SCANNER, classification="skipped: too slow")
    return None if done.returncode == NOT_INSTALLED else _read(done.stdout)


def _read(text: bytes) -> Advisory:
    try:
        answer = json.loads(text)
    except ValueError:  # an outside scanner's own faults are not the candidate's
        return Advisory(scanner=_SCANNER, classification="failed")
    patterns = tuple(pattern[:60] for pattern in answer["patterns"][:20])
    return Advisory(scanner=_SCANNER, classification=answer["classification"][:40], patterns=patterns)


def version() -> str | None:
    """Version of the installed scanner, for the fingerprint."""
    try:
        return importlib.metadata.version("kernelguard")
    except importlib.metadata.PackageNotFoundError:
        return None
