"""Prediction beside outcome: the arithmetic that no model is asked for.

All ratios are speed-ups over the champion of the prediction, t_champion / t_candidate, and are
compared on the log scale. With prediction [low, high] at probability `level` and x = ln(measured):

    centre       m = (ln low + ln high) / 2           (the geometric centre sqrt(low * high))
    half-width   h = max(ln(high / low) / 2, MIN_HALF_WIDTH)
    log_error      = x - m
    covered        = low <= measured <= high
    surprise       = |log_error| / h
    interval score = (u - l) + 2/a (l - x) [x < l] + 2/a (x - u) [x > u],  l, u = ln low, ln high, a = 1 - level
                     (Gneiting & Raftery 2007, J. Am. Stat. Assoc. 102, eq. 43); lower is better

A case nobody predicted counts as predicted "no change": m = 0, h = max(ln 1.02, ln(1 + floor)). It has
a surprise only when it moved, that is when the measured interval (where there is one) excludes 1.
Invariant: pure; every figure follows from the beliefs and the evaluator's report.
Not for: explaining the gap (the model's part) or changing beliefs (`state.claims`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluator.records import Decision, Evaluation, Status, Verdict
from state.events import Belief, CaseReconciliation, ClaimChange

MIN_HALF_WIDTH = math.log(1.01)
"""A prediction narrower than ±1 % is judged as if it were ±1 %: nothing is measured more exactly."""

NO_CHANGE_HALF_WIDTH = math.log(1.02)
"""Half-width of the silent prediction "no change" of a case that nobody predicted."""

SURPRISE_LIMIT = 2.0
"""From here on the world model must change before the experiment closes."""

CLAIM_STEP = 0.1
"""Smallest move of a cited claim's confidence that answers a surprise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Speed-up over the champion on one case, with the 95 % interval where there is one."""

    ratio: float
    low: float | None = None
    high: float | None = None


def from_verdict(verdict: Verdict) -> dict[str, Measured]:
    """Per case 1/rho of a symmetric A/B: the best measurement there is."""
    return {c.case: Measured(ratio=1 / c.rho, low=1 / c.rho_ci.high, high=1 / c.rho_ci.low) for c in verdict.cases}


def from_evaluations(candidate: Evaluation, champion: Evaluation | None) -> dict[str, Measured]:
    """Per case the candidate's speed-up over the reference by the champion's; a champion of None is the reference.

    The intervals are combined as independent errors on the log scale (root of the sum of squares).
    Cases that only one of the two measured are left out.
    """
    mine = {t.case: Measured(ratio=t.speedup, low=t.speedup_ci.low, high=t.speedup_ci.high) for t in candidate.timings}
    if champion is None:
        return mine
    theirs = {t.case: Measured(ratio=t.speedup, low=t.speedup_ci.low, high=t.speedup_ci.high) for t in champion.timings}
    return {case: _quotient(mine[case], theirs[case]) for case in mine if case in theirs}


def reconcile(
    beliefs: Sequence[Belief],
    measured: Mapping[str, Measured],
    *,
    floor_by_case: Mapping[str, float] | None = None,
) -> list[CaseReconciliation]:
    """One line per case that was predicted or measured: predicted ones first, then in the order measured."""
    predicted = {b.case for b in beliefs}
    floors = floor_by_case or {}
    lines = [_predicted(b, measured.get(b.case)) for b in beliefs]
    lines += [_unpredicted(case, m, floor=floors.get(case, 0.0)) for case, m in measured.items() if case not in predicted]
    return lines


def largest_surprise(lines: Iterable[CaseReconciliation]) -> float | None:
    """The largest surprise over cases; None when nothing was measured."""
    return max((line.surprise for line in lines if line.surprise is not None), default=None)


def requires_world_model_change(surprise: float | None) -> bool:
    """Whether the experiment may only close with a change of the world model."""
    return surprise is not None and surprise >= SURPRISE_LIMIT


def answers_surprise(cited: Iterable[str], changes: Iterable[ClaimChange]) -> bool:
    """Whether `changes` move a cited claim's confidence by at least CLAIM_STEP or add a claim."""
    names = set(cited)
    return any(c.before is None or (c.claim in names and abs(c.after - c.before) >= CLAIM_STEP - 1e-9) for c in changes)


def correctness_word(status: Status | None) -> str:
    """`correct`, `untested`, `incorrect`, or the status that refused the candidate."""
    if status is None or status is Status.EVALUATOR_ERROR:
        return "untested"
    return "correct" if status is Status.OK else status.value


def performance_word(verdict: Verdict | None, measured: Mapping[str, Measured], *, floor: float) -> str:
    """`faster`, `slower`, `unresolved` or `untested`.

    A verdict decides. Without one, the geometric mean over cases must be clear of `floor` (a relative
    difference) for `faster` or `slower`.
    """
    if verdict is not None:
        return {Decision.FASTER: "faster", Decision.SLOWER: "slower"}.get(verdict.decision, "unresolved")
    if not measured:
        return "untested"
    mean = sum(math.log(m.ratio) for m in measured.values()) / len(measured)
    if abs(mean) <= math.log1p(max(floor, 0.0)):
        return "unresolved"
    return "faster" if mean > 0 else "slower"


def hypothesis_word(lines: Iterable[CaseReconciliation]) -> str:
    """`confirmed` when on every predicted case that was measured the two intervals touch, else `refuted`.

    `untested` when no predicted case was measured. Without a measured interval the point must lie inside.
    """
    tested = [line for line in lines if line.predicted_low is not None and line.measured is not None]
    if not tested:
        return "untested"
    return "confirmed" if all(_touches(line) for line in tested) else "refuted"


def _quotient(mine: Measured, theirs: Measured) -> Measured:
    ratio = mine.ratio / theirs.ratio
    down = math.hypot(_log(mine.ratio, mine.low), _log(theirs.high, theirs.ratio))
    up = math.hypot(_log(mine.high, mine.ratio), _log(theirs.ratio, theirs.low))
    return Measured(ratio=ratio, low=ratio * math.exp(-down), high=ratio * math.exp(up))


def _log(above: float | None, below: float | None) -> float:
    return math.log(above / below) if above and below else 0.0


def _predicted(belief: Belief, measured: Measured | None) -> CaseReconciliation:
    if measured is None:
        return CaseReconciliation(case=belief.case, predicted_low=belief.low, predicted_high=belief.high, measured=None)
    low, high, x = math.log(belief.low), math.log(belief.high), math.log(measured.ratio)
    error = x - (low + high) / 2
    return CaseReconciliation(
        case=belief.case,
        predicted_low=belief.low,
        predicted_high=belief.high,
        measured=measured.ratio,
        measured_low=measured.low,
        measured_high=measured.high,
        log_error=error,
        covered=belief.low <= measured.ratio <= belief.high,
        interval_score=interval_score(low, high, x, level=belief.level),
        surprise=abs(error) / max((high - low) / 2, MIN_HALF_WIDTH),
    )


def _unpredicted(case: str, measured: Measured, *, floor: float) -> CaseReconciliation:
    error = math.log(measured.ratio)
    half_width = max(NO_CHANGE_HALF_WIDTH, math.log1p(max(floor, 0.0)))
    resolved = measured.low is None or measured.high is None or not measured.low <= 1 <= measured.high
    return CaseReconciliation(
        case=case,
        predicted_low=None,
        predicted_high=None,
        measured=measured.ratio,
        measured_low=measured.low,
        measured_high=measured.high,
        log_error=error,
        surprise=abs(error) / half_width if resolved else 0.0,
    )


def interval_score(low: float, high: float, value: float, *, level: float) -> float:
    """Gneiting & Raftery's interval score of [low, high] at probability `level`; the scale is the caller's."""
    alpha = 1 - level
    return (high - low) + 2 / alpha * (max(low - value, 0.0) + max(value - high, 0.0))


def _touches(line: CaseReconciliation) -> bool:
    low = line.measured if line.measured_low is None else line.measured_low
    high = line.measured if line.measured_high is None else line.measured_high
    if low is None or high is None or line.predicted_low is None or line.predicted_high is None:
        return False
    return low <= line.predicted_high and high >= line.predicted_low
