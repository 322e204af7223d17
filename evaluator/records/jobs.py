"""What the judge is asked: one job, its kind, and how far it is.

Not for: what comes back (`results`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1


class Status(enum.StrEnum):
    """How one job ended."""

    OK = "ok"
    INCORRECT = "incorrect"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    FORBIDDEN = "forbidden"
    TAMPERED = "tampered"
    NO_CUSTOM_KERNEL = "no_custom_kernel"
    EVALUATOR_ERROR = "evaluator_error"
    """Infrastructure: retried by the client, never charged to the model, never cached as a score."""


class JobKind(enum.StrEnum):
    """What the judge is asked to do."""

    CHECK = "check"
    """Build and correctness on seeds of its own; no protected figure."""
    BENCH = "bench"
    """`evaluate` in short, for whoever writes the candidate: few trials, and no figure that anything is decided by."""
    EVALUATE = "evaluate"
    """All seven steps: integrity, gate, build, references, correctness, timing, verdict."""
    AB = "ab"
    """Symmetric A/B of `candidate` against `champion`."""
    FLOOR = "floor"
    """A/A of `champion` against itself: the noise floor of this device, now."""
    BASELINE = "baseline"
    """Eager and torch.compile times of the reference."""
    ROBUSTNESS = "robustness"
    """Correctness beyond the benchmark's own inputs; never times anything."""
    PROFILE = "profile"
    """What the candidate spends its time on, as its own process tells it: help for its author, never evidence."""
    QUALIFY = "qualify"
    """Runs the controls against the evaluator itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One candidate source text, content-addressed."""

    sha256: str
    """Lower-case hex digest of the UTF-8 text."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request to the judge."""

    id: str
    """Request id `kernel|<problem>|<episode or experiment>|<n>`: never has two journalled results."""
    kind: JobKind
    problem: str
    """A key (`builtin:scan`) or an absolute path."""
    problem_sha256: str | None = None
    """Hash fixed at the start of the run; None means the manifest's (built-in) or unchecked (first look at a path)."""
    candidate: Source | None = None
    champion: Source | None = None
    """For `ab` and `floor`; None means the reference itself."""
    profile: str = "open"
    """Static gate profile: `seed` or `open`."""
    device: str = "cpu"
    cases: tuple[str, ...] | None = None
    """Case names to run; None means every benchmark case of the device."""
    options: dict[str, Any] = field(default_factory=dict)
    """Per kind: `seeds`, `trials`, `pairs`, `calls`, `timeout_s`, `quick`, `naive`, `floor`; the judge names unknown ones."""
    v: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a running job: a gauge for people, never journalled."""

    job: str
    step: str
    """`integrity`, `gate`, `build`, `references`, `correctness`, `timing`, `verdict`, ..."""
    detail: str = ""
    done: int | None = None
    total: int | None = None
