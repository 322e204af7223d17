"""What lists and screens need of a finished job, taken from its journalled result.

The raw result stays in the journal, found by `Outcome.seq`; these structs name only the fields that
are summarised, so trials are never decoded and a newer judge's extra fields and words do no harm.
Invariant: pure; the same data gives the same outcome.
Not for: judging (the evaluator's verdict is taken as it is).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from state.model import Outcome

MESSAGE_CHARS = 1000
"""Longest message kept in the state; the whole one is in the journal."""


class _Pair(msgspec.Struct):
    low: float
    high: float


class _Timing(msgspec.Struct):
    ref_us: float
    cand_us: float


class _Claim(msgspec.Struct):
    correct: bool
    speedup: float | None = None


class _Evaluation(msgspec.Struct):
    speedup: float | None = None
    speedup_ci: _Pair | None = None
    timings: list[_Timing] = []
    flags: list[str] = []
    naive: _Claim | None = None


class _Ratio(msgspec.Struct):
    slot_bias: float


class _Verdict(msgspec.Struct):
    decision: str
    reason: str
    rho: float
    rho_ci: _Pair
    rho_wall: float
    rho_wall_ci: _Pair
    floor: float
    cases: list[_Ratio] = []


class _FloorCase(msgspec.Struct):
    case: str
    floor: float


class _Floor(msgspec.Struct):
    floor: float
    cases: list[_FloorCase] = []


class _Baseline(msgspec.Struct):
    eager_us: float
    compiled_us: float | None = None


class _Robustness(msgspec.Struct):
    passed: bool


class _Control(msgspec.Struct):
    passed: bool


class _Qualification(msgspec.Struct):
    qualified: bool
    quick: bool = False
    controls: list[_Control] = []


class ResultSummary(msgspec.Struct):
    """The summarised fields of `evaluator.records.Result`."""

    kind: str
    status: str
    message: str = ""
    source_sha256: str | None = None
    evaluation: _Evaluation | None = None
    verdict: _Verdict | None = None
    floor: _Floor | None = None
    baseline: _Baseline | None = None
    robustness: _Robustness | None = None
    qualification: _Qualification | None = None
    fingerprint: dict[str, object] = {}
    device_s: float = 0.0


class FinishedSummary(msgspec.Struct):
    """The summarised fields of `job.finished`."""

    request: str
    result: ResultSummary
    experiment: str | None = None


def outcome_of(data: FinishedSummary, *, seq: int, candidate: str | None) -> Outcome:
    """Summarise one finished job; `candidate` is what its start named, for results that name no source."""
    result = data.result
    outcome = Outcome(
        request=data.request,
        kind=result.kind,
        status=result.status,
        message=result.message[:MESSAGE_CHARS],
        sha256=result.source_sha256 or candidate,
        seq=seq,
    )
    if result.evaluation is not None:
        _add_evaluation(outcome, result.evaluation)
    if result.verdict is not None:
        _add_verdict(outcome, result.verdict)
    if result.robustness is not None:
        outcome.passed = result.robustness.passed
    return outcome


def geometric_mean(values: Iterable[float]) -> float | None:
    """Geometric mean of positive finite values; None when there is none or one is not positive."""
    logs = [math.log(v) if v > 0 and math.isfinite(v) else math.nan for v in values]
    mean = sum(logs) / len(logs) if logs else math.nan
    return None if math.isnan(mean) else math.exp(mean)


def _add_evaluation(outcome: Outcome, evaluation: _Evaluation) -> None:
    outcome.speedup = evaluation.speedup
    if evaluation.speedup_ci is not None:
        outcome.speedup_low = evaluation.speedup_ci.low
        outcome.speedup_high = evaluation.speedup_ci.high
    outcome.cand_us = geometric_mean(t.cand_us for t in evaluation.timings)
    outcome.ref_us = geometric_mean(t.ref_us for t in evaluation.timings)
    outcome.flags = evaluation.flags
    if evaluation.naive is not None:
        outcome.claimed_speedup = evaluation.naive.speedup
        outcome.claimed_correct = evaluation.naive.correct


def _add_verdict(outcome: Outcome, verdict: _Verdict) -> None:
    outcome.decision = verdict.decision
    outcome.reason = verdict.reason[:MESSAGE_CHARS]
    outcome.rho, outcome.rho_low, outcome.rho_high = verdict.rho, verdict.rho_ci.low, verdict.rho_ci.high
    outcome.rho_wall = verdict.rho_wall
    outcome.rho_wall_low, outcome.rho_wall_high = verdict.rho_wall_ci.low, verdict.rho_wall_ci.high
    outcome.floor = verdict.floor
    outcome.slot_bias = geometric_mean(c.slot_bias for c in verdict.cases)
