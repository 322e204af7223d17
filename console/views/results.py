"""One finished job in a line: what the judge said, by kind of job.

Invariant: a refusal carries the naive claim where one was measured, and a measured figure carries its
interval.
Not for: the report in full (`console.views.evaluation`, `console.views.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable

from console.text import one_line
from console.views import marks, numbers
from console.views.doc import Part
from console.views.evaluation import naive_words
from evaluator.records import JobKind, Result


def words(result: Result) -> list[Part]:
    """Say what one job found."""
    return _BY_KIND[result.kind](result)


def _check(result: Result) -> list[Part]:
    if result.status.value == "ok":
        return [marks.Mark("✓", "correct", "good").span]
    return [marks.status(result.status.value).span, f": {one_line(result.message)}" if result.message else ""]


def _evaluation(result: Result) -> list[Part]:
    report = result.evaluation
    if result.status.value == "ok" and report is not None:
        ci = report.speedup_ci
        span = f" [{ci.low:.2f}, {ci.high:.2f}]" if ci else ""
        flags = f"; flags: {', '.join(report.flags)}" if report.flags else ""
        return [marks.status("ok").span, f" {numbers.times(report.speedup)}{span} over the reference{flags}"]
    naive = naive_words(report.naive) if report else ""
    return [*_check(result), (f"; {naive}" if naive else "", "warn")]


def _ab(result: Result) -> list[Part]:
    verdict = result.verdict
    if verdict is None:
        return _check(result)
    events = numbers.ratio_with(verdict.rho, verdict.rho_ci.low, verdict.rho_ci.high)
    wall = numbers.ratio_with(verdict.rho_wall, verdict.rho_wall_ci.low, verdict.rho_wall_ci.high)
    return [marks.decision(verdict.decision.value).span, f" ρ {events}, by wall {wall}, floor {numbers.share(verdict.floor)}"]


def _robustness(result: Result) -> list[Part]:
    report = result.robustness
    if report is None:
        return _check(result)
    failed = [p.name for p in report.parts if not p.passed]
    words = "failed: " + ", ".join(failed) if failed else ", ".join(p.name for p in report.parts)
    return [marks.passed(report.passed).span, f" {words}"]


def _baseline(result: Result) -> list[Part]:
    report = result.baseline
    if report is None:
        return _check(result)
    return [f"eager {numbers.duration_us(report.eager_us)}, compiled {numbers.duration_us(report.compiled_us)}"]


def _floor(result: Result) -> list[Part]:
    return [f"noise {numbers.share(result.floor.floor)} (A/A on this device)"] if result.floor else _check(result)


def _qualification(result: Result) -> list[Part]:
    report = result.qualification
    if report is None:
        return _check(result)
    good = sum(c.passed for c in report.controls)
    mark = marks.Mark("✓", "qualified", "good") if report.qualified else marks.Mark("✗", "not qualified", "bad")
    return [mark.span, f" {'quick: ' if report.quick else ''}{good} of {len(report.controls)} controls"]


_BY_KIND: dict[JobKind, Callable[[Result], list[Part]]] = {
    JobKind.CHECK: _check,
    JobKind.BENCH: _evaluation,
    JobKind.PROFILE: _check,
    JobKind.EVALUATE: _evaluation,
    JobKind.AB: _ab,
    JobKind.ROBUSTNESS: _robustness,
    JobKind.BASELINE: _baseline,
    JobKind.FLOOR: _floor,
    JobKind.QUALIFY: _qualification,
}
