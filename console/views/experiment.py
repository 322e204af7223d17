"""One experiment in full: prediction beside outcome, verdict, gate, evaluation, source, report.

Invariant: built from the run's state and the records that the state points to; a record that is not
there yet leaves its section out, it never invents one.
Not for: the table of all experiments (`console.views.experiments`).
"""

from __future__ import annotations

from dataclasses import dataclass

from console.views import bars, evaluation, gate, marks, numbers, verdict
from console.views.doc import BLANK, Line, Tone, heading, line, pair, verbatim, wrapped
from evaluator.records import Result
from state.events import Belief, CaseReconciliation, ClaimChange
from state.model import Experiment, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibits:
    """Records and texts behind one experiment, fetched by the seqs that its state holds."""

    evaluation: Result | None = None
    check: Result | None = None
    robustness: Result | None = None
    verdict: Result | None = None
    source: str | None = None


def document(state: RunState, experiment: Experiment, exhibits: Exhibits, *, width: int) -> list[Line]:
    """Build the whole page of an experiment."""
    sections = [
        head(state, experiment),
        outlook(experiment, width=width),
        _verdict(exhibits, width=width),
        gate.report(
            gate=state.gate,
            checks=experiment.gate_checks,
            not_checked=experiment.not_checked,
            reason=experiment.gate_reason,
            width=width,
        ),
        *(_result(name, found, width=width) for name, found in _results(exhibits)),
        _prose("explanation", experiment.explanation, width=width),
        _changes(experiment.claim_changes, width=width),
        _prose("report", experiment.report, width=width),
        _source(exhibits.source, experiment),
    ]
    rows: list[Line] = []
    for section in sections:
        rows += [*section, BLANK] if section else []
    return rows[:-1]


def head(state: RunState, experiment: Experiment) -> list[Line]:
    """Build identity, stage, status and the four separate fields."""
    idea = state.ideas.get(experiment.idea)
    status = marks.of_experiment(experiment)
    rows = [
        line((f"{experiment.id}  ", "heading"), (experiment.title, "strong")),
        line(marks.stage(experiment.stage).span, f"  rung {experiment.rung or numbers.DASH}  ", status.span),
        pair("from idea", f"{experiment.idea} ({idea.category})" if idea else experiment.idea),
        pair("base", f"{numbers.short(experiment.base)}, predicted against champion {numbers.short(experiment.champion)}"),
        pair("correctness", experiment.correctness),
        pair("performance", experiment.performance),
        pair("hypothesis", experiment.hypothesis),
        pair("retention", marks.retention(experiment.retention).span),
    ]
    return [*rows, pair("conclusion", experiment.conclusion)] if experiment.conclusion else rows


def outlook(experiment: Experiment, *, width: int) -> list[Line]:
    """Build prediction beside outcome per case, both drawn on one axis."""
    settled = {c.case: c for c in experiment.reconciliation}
    believed = {b.case: b for b in experiment.prediction}
    cases = [*believed, *(c for c in settled if c not in believed)]
    ends = [v for b in believed.values() for v in (b.low, b.high)]
    ends += [v for c in settled.values() for v in (c.measured_low, c.measured, c.measured_high) if v is not None]
    axis, room = bars.axis_over(ends), max(width - 47, 16)
    rows = [heading("prediction beside outcome (t_champion / t_candidate; right of │ is faster)")]
    rows.append(line((f"  frozen as {experiment.prediction_sha256[:16]} before anything was measured", "muted")))
    for case in cases:
        rows += _case(case, believed.get(case), settled.get(case), axis=axis, room=room)
    rows.append(line((" " * 14 + bars.scale(axis, width=room), "muted")))
    if experiment.surprise is not None:
        rows.append(pair("surprise", _surprise(experiment.surprise)))
    return rows


def _case(case: str, belief: Belief | None, found: CaseReconciliation | None, *, axis: bars.Axis, room: int) -> list[Line]:
    rows = [line((case, "strong"), (f"  {belief.basis}" if belief else "  not predicted", "muted"))]
    if belief is not None:
        bar = bars.interval(belief.low, None, belief.high, axis=axis, width=room)
        rows.append(line(("  predicted   ", "muted"), bar, f" {numbers.times_range(belief.low, belief.high)} at {belief.level:.0%}"))
    if found is None:
        return [*rows, line(("  measured    ", "muted"), ("not reconciled", "muted"))]
    if found.measured is None:
        return [*rows, line(("  measured    ", "muted"), ("nothing was measured", "warn"))]
    bar = bars.interval(found.measured_low, found.measured, found.measured_high, axis=axis, width=room)
    return [*rows, line(("  measured    ", "muted"), bar, f" {numbers.times(found.measured)} ", _covered(found))]


def _covered(found: CaseReconciliation) -> tuple[str, Tone]:
    if found.covered is None:
        return ("unpredicted", "warn")
    return ("✓ inside", "good") if found.covered else (f"✗ outside, surprise {found.surprise or 0:.1f}", "warn")


def _surprise(value: float) -> tuple[str, Tone]:
    return (f"{value:.2f} of the half-width" + (" (≥ 2: a claim had to move)" if value >= 2 else ""), "warn" if value >= 2 else "plain")


def _results(exhibits: Exhibits) -> list[tuple[str, Result]]:
    named = (("evaluation", exhibits.evaluation), ("robustness", exhibits.robustness), ("check", exhibits.check))
    found = [(name, result) for name, result in named if result is not None]
    # A passed check says less than the evaluation that followed it.
    return [(n, r) for n, r in found if n != "check" or r.status.value != "ok" or exhibits.evaluation is None]


def _result(name: str, result: Result, *, width: int) -> list[Line]:
    return [heading(name), *evaluation.report(result, width=width)]


def _verdict(exhibits: Exhibits, *, width: int) -> list[Line]:
    result = exhibits.verdict
    if result is None:
        return []
    if result.verdict is None:
        return [heading("A/B"), *evaluation.outcome(result, width=width)]
    return [heading("A/B"), *verdict.report(result.verdict, width=width)]


def _prose(title: str, text: str, *, width: int) -> list[Line]:
    return [heading(title), *wrapped(text, width=width, indent="  ")] if text else []


def _changes(changes: list[ClaimChange], *, width: int) -> list[Line]:
    if not changes:
        return []
    rows = [heading("claims that moved")]
    for change in changes:
        before = "new" if change.before is None else f"{change.before:.2f}"
        rows += wrapped(f"{change.claim}: {before} → {change.after:.2f}  {change.why}", width=width, indent="  ")
    return rows


def _source(text: str | None, experiment: Experiment) -> list[Line]:
    sha = experiment.final or (experiment.candidates[-1] if experiment.candidates else None)
    return [heading(f"source {numbers.short(sha)}"), *verbatim(text)] if text is not None and sha else []
