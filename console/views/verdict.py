"""One symmetric A/B in full: rho per case with its interval by both clocks, drawn, and the decision in words.

Invariant: events and wall stand one under the other on one axis with the floor's band around 1; rho
below 1 is faster, and the legend says so.
Not for: what the gate made of it (`console.views.gate`).
"""

from __future__ import annotations

from console.views import bars, marks, numbers
from console.views.doc import BLANK, Line, heading, line, pair, wrapped
from evaluator.records import CaseRatio, Verdict


def report(verdict: Verdict, *, width: int) -> list[Line]:
    """Build the whole report of an `ab` job."""
    return [*summary(verdict, width=width), BLANK, *cases(verdict, width=width)]


def summary(verdict: Verdict, *, width: int) -> list[Line]:
    """Build the decision, its reason and the geometric mean."""
    events = numbers.ratio_with(verdict.rho, verdict.rho_ci.low, verdict.rho_ci.high)
    wall = numbers.ratio_with(verdict.rho_wall, verdict.rho_wall_ci.low, verdict.rho_wall_ci.high)
    return [
        line(("decision ", "muted"), marks.decision(verdict.decision.value).span),
        *wrapped(verdict.reason, width=width, indent="  "),
        pair("candidate", f"{numbers.short(verdict.candidate_sha256)} against champion {numbers.short(verdict.champion_sha256)}"),
        pair("ρ by events", f"{events}  geometric mean"),
        pair("ρ by wall", wall),
        pair("noise floor", numbers.share(verdict.floor)),
        pair("slack", f"{numbers.share(verdict.slack - 1)} of the candidate's time, charged to it"),
        pair("outputs", f"{verdict.outputs_verified} timed outputs compared with the reference, all right"),
    ]


def cases(verdict: Verdict, *, width: int) -> list[Line]:
    """Build two bars a case, events above wall, on one axis."""
    axis = bars.axis_over(v for c in verdict.cases for v in _ends(c))
    room = max(width - 46, 16)
    rows = [heading("ρ = t_candidate / t_champion (left of │ is faster, ░ is the noise floor)")]
    for case in verdict.cases:
        rows += _case(case, axis=axis, room=room)
    return [*rows, line((" " * 16 + bars.scale(axis, width=room), "muted"))]


def _case(case: CaseRatio, *, axis: bars.Axis, room: int) -> list[Line]:
    tone = marks.decision(_direction(case)).tone
    events = bars.interval(case.rho_ci.low, case.rho, case.rho_ci.high, axis=axis, width=room, band=case.floor)
    wall = bars.interval(case.rho_wall_ci.low, case.rho_wall, case.rho_wall_ci.high, axis=axis, width=room, band=case.floor)
    times = f"{numbers.duration_us(case.candidate_us)} / {numbers.duration_us(case.champion_us)}" if case.candidate_us else ""
    by_events = numbers.ratio_with(case.rho, case.rho_ci.low, case.rho_ci.high)
    by_wall = numbers.ratio_with(case.rho_wall, case.rho_wall_ci.low, case.rho_wall_ci.high)
    return [
        line((f"{case.case}  ", "strong"), times, (f"  {case.pairs} pairs an order", "muted")),
        line(("  by events     ", "muted"), (events, tone), f" {by_events}"),
        line(("  by wall       ", "muted"), (wall, tone), f" {by_wall}"),
        line((f"  slot bias c {numbers.ratio(case.slot_bias)}  floor {numbers.share(case.floor)}{_starts(case)}", "muted")),
    ]


def _starts(case: CaseRatio) -> str:
    """How often both sides were started, and what a runner could save a call."""
    starts = len(set(case.starts))
    words = f"  {starts} starts" if starts else ""
    return words + (f"  slack {numbers.duration_us(case.slack_us)}" if case.slack_us else "")


def _direction(case: CaseRatio) -> str:
    if case.rho_ci.high < 1 - case.floor:
        return "faster"
    return "slower" if case.rho_ci.low > 1 + case.floor else "unresolved"


def _ends(case: CaseRatio) -> tuple[float, ...]:
    return (case.rho_ci.low, case.rho_ci.high, case.rho_wall_ci.low, case.rho_wall_ci.high, 1 - case.floor, 1 + case.floor)
