"""Whether a job makes sense, before anything is started for it.

Invariant: pure over the job and the problem's records; what is wrong is a UsageError that names it and the mend.
Not for: anything that a candidate's text does (`judge.candidate`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.devices.device import Device
from evaluator.errors import UsageError
from evaluator.gate import check_source, imports_module
from evaluator.records import Job, JobKind, Source
from problems.model import Problem

NEED_CANDIDATE = frozenset({JobKind.CHECK, JobKind.BENCH, JobKind.EVALUATE, JobKind.AB, JobKind.ROBUSTNESS, JobKind.PROFILE})
TIMED_PAIRS = frozenset({JobKind.AB, JobKind.FLOOR})


def require_sense(job: Job, problem: Problem, device: Device) -> None:
    """Raise UsageError for the first thing that is wrong with the job."""
    if job.candidate is None and job.kind in NEED_CANDIDATE:
        raise UsageError(f"a job of kind {job.kind.value} needs a candidate", "give its source")
    for role, source in (("candidate", job.candidate), ("champion", job.champion)):
        if source is not None:
            _require_source(job, role, source, device)
    known = [case.name for case in problem.cases(job.device)]
    unknown = [name for name in job.cases or () if name not in known]
    if unknown or (job.cases is not None and not job.cases):
        raise UsageError(f"{problem.key} has no case {', '.join(map(repr, unknown)) or 'to run'}", f"its cases: {', '.join(known)}")
    _require_options(job.options)


def _require_source(job: Job, role: str, source: Source, device: Device) -> None:
    raw = source.text.encode("utf-8", "surrogatepass")
    check_source(raw, name=f"the {role}")
    if hashlib.sha256(raw).hexdigest() != source.sha256:
        raise UsageError(f"the {role}'s text is not the one that its sha256 names", "send the text and the sha256 of its UTF-8 bytes")
    if device.interprets_triton and job.kind in TIMED_PAIRS and _imports_triton(source.text):
        raise UsageError(
            f"the {role} is a Triton source: on a CPU device it runs in Triton's interpreter and is never timed",
            "check it here, and measure it on a GPU",
        )


def _imports_triton(text: str) -> bool:
    try:
        return imports_module(text, "triton")
    except SyntaxError:  # a compile error of the candidate, found where candidates are prepared
        return False


def _require_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in OPTIONS:
            raise UsageError(f"unknown option {name!r}", f"options: {', '.join(OPTIONS)}")
        is_right, words = OPTIONS[name]
        if not is_right(value):
            raise UsageError(f"option {name} is {str(value)[:80]!r}", f"it must be {words}")


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _seconds(value: Any) -> bool:
    return _number(value) and value > 0


def _floor(value: Any) -> bool:
    if value is None or value == {}:
        return True
    return isinstance(value, Mapping) and _number(value.get("geomean")) and _all_numbers(value.get("cases", {}))


def _all_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_number(v) for v in value.values())


def _names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


_COUNT = (_count, "a whole number from 1")
_FLAG = (_flag, "true or false")
OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "seeds": _COUNT,
    "trials": _COUNT,
    "pairs": _COUNT,
    "calls": _COUNT,
    "timeout_s": (_seconds, "a number of seconds above 0"),
    "quick": _FLAG,
    "naive": _FLAG,
    "gate": _FLAG,
    "controls": (_names, "a list of control names"),
    "floor": (_floor, "an object with `geomean` and, by name, `cases`"),
}
"""Every option of a job: its test, and what it must be in words."""
