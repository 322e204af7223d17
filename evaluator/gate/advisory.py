"""An outside scanner's opinion, where it is installed: KernelGuard's `sol-execbench` profile.

Measured on public audited kernels it flags about one hack in twenty, so it is advice: `flag` reports
it, `reject` lets it refuse, `off` never loads it.
Invariant: absent or failing, it changes nothing; the fingerprint says whether it was there.
Not for: any guarantee.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

from evaluator.errors import UsageError
from evaluator.gate.report import Advisory

MODES = ("off", "flag", "reject")
MAX_CHARACTERS = 200_000
"""Its patterns backtrack; a longer text is not worth a stalled judge."""
_PROFILE = "sol-execbench"


def advise(source: str, *, mode: str) -> Advisory | None:
    """The scanner's classification of a source; None where it is off or not installed."""
    if mode not in MODES:
        raise UsageError(f"unknown advisory mode {mode!r}", f"use one of: {', '.join(MODES)}")
    if mode == "off":
        return None
    if len(source) > MAX_CHARACTERS:
        return Advisory(scanner="kernelguard", classification="skipped: too long")
    scanner = _load()
    if scanner is None:
        return None
    try:
        answer = scanner.analyze_code(source, compute_structural_hash=False)
    except Exception as error:  # an outside scanner's own faults are not the candidate's
        return Advisory(scanner="kernelguard", classification=f"failed: {type(error).__name__}")
    patterns = sorted({str(match.get("pattern", "?"))[:60] for match in answer.get("matched_patterns", [])})
    return Advisory(scanner="kernelguard", classification=str(answer.get("classification", "unknown"))[:40], patterns=tuple(patterns[:20]))


def version() -> str | None:
    """Version of the installed scanner, for the fingerprint."""
    try:
        return importlib.metadata.version("kernelguard")
    except importlib.metadata.PackageNotFoundError:
        return None


def _load() -> Any | None:
    try:
        scanner = importlib.import_module("kernelguard")
    except ImportError:
        return None
    scanner.configure_runtime(profile=_PROFILE)
    return scanner
