"""The story of a run: one line for each record that means something to a reader.

Invariant: a line is a function of its record and of the run's start, so live plain mode and a replay
of the same journal print the same story, character by character.
Not for: every record (`console.views.eventlog`) or the closing table (`console.views.summary`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.text import one_line
from console.views import marks, numbers, results
from console.views.doc import Line, Part, line
from console.views.headline import job_word
from console.views.records import typed
from state import events as ev

_LONG = frozenset({"baseline", "floor", "qualify", "ab"})
"""Kinds of job whose start is worth a line: they take a while."""


def tell(record: ev.Record, *, start: str) -> Line | None:
    """Return the line for `record` of a run that began at `start`; None where there is nothing to tell."""
    parts = words(record)
    return line((f"{numbers.offset(start or record.ts, record.ts):>8}  ", "muted"), *parts) if parts else None


def words(record: ev.Record) -> list[Part]:
    """Say what a record means, without its moment; empty where there is nothing to tell."""
    event = typed(record)
    teller = _TELLERS.get(type(event))
    return teller(event, record) if event is not None and teller is not None else []


def _created(e: ev.RunCreated, record: ev.Record) -> list[Part]:
    return [
        ("run ", "muted"),
        (record.run, "strong"),
        f" on {e.problem}: {e.problem_title}, {len(e.cases)} cases, {e.device}, model {e.model}, {e.gate}",
    ]


def _resumed(e: ev.RunResumed, _: ev.Record) -> list[Part]:
    voided = f"; {len(e.voided)} measurements cut off, repeated" if e.voided else ""
    return [("run taken up again by a new daemon", "warn"), voided]


def _control(e: ev.RunControl, _: ev.Record) -> list[Part]:
    return [("operator ", "accent"), f"asked to {e.action}", f": {e.reason}" if e.reason else ""]


def _state(e: ev.RunStateChanged, _: ev.Record) -> list[Part]:
    flying = f", still acting: {', '.join(e.in_flight)}" if e.in_flight else ""
    return [("run is ", "muted"), marks.run(e.state).span, flying, f" ({e.reason})" if e.reason else ""]


def _started(e: ev.JobStarted, _: ev.Record) -> list[Part]:
    if e.kind not in _LONG:
        return []
    return [_subject(e.experiment), (f"{job_word(e.kind)} started", "muted"), (f": {e.purpose}" if e.purpose else "", "muted")]


def _voided(e: ev.JobVoided, _: ev.Record) -> list[Part]:
    return [("voided ", "warn"), f"{e.request}: {e.why}"]


def _idea(e: ev.IdeaProposed, _: ev.Record) -> list[Part]:
    return [(f"{e.idea} ", "strong"), ("idea ", "muted"), f"({e.category}) {e.title}"]


def _opened(e: ev.ExperimentOpened, _: ev.Record) -> list[Part]:
    beliefs = ", ".join(f"{b.case} {numbers.times_range(b.low, b.high)}" for b in e.prediction)
    return [_subject(e.experiment), ("experiment ", "muted"), f"from {e.idea}: {e.title}; predicted {one_line(beliefs, limit=80)}"]


def _submitted(e: ev.CandidateSubmitted, _: ev.Record) -> list[Part]:
    return [_subject(e.experiment), ("candidate ", "muted"), f"{numbers.short(e.sha256)}, {e.bytes} bytes", f": {e.note}" if e.note else ""]


def _reported(e: ev.ExperimentReported, _: ev.Record) -> list[Part]:
    return [_subject(e.experiment), ("report ", "muted"), e.conclusion]


def _finished(e: ev.JobFinished, _: ev.Record) -> list[Part]:
    result = e.result
    return [_subject(e.experiment), (f"{job_word(result.kind.value)} ", "muted"), *results.words(result)]


def _reconciled(e: ev.ExperimentReconciled, _: ev.Record) -> list[Part]:
    outside = [c.case for c in e.cases if c.covered is False]
    inside = [c.case for c in e.cases if c.covered]
    words = "inside the prediction on " + ", ".join(inside) if inside else "no predicted case was measured"
    if outside:
        just = "just " if e.hypothesis == "confirmed" else ""
        words = f"{just}outside the prediction on {', '.join(outside)}" + (", the intervals touch" if just else "")
    moved = "".join(f"; {c.claim} {_confidence(c.before)} → {c.after:.2f}" for c in e.changes)
    surprise = f", surprise {e.surprise:.2f}" if e.surprise is not None else ""
    return [_subject(e.experiment), ("reconciled ", "muted"), f"hypothesis {e.hypothesis}: {words}{surprise}{moved}"]


def _banked(e: ev.Banked, _: ev.Record) -> list[Part]:
    span = numbers.ratio_with(e.rho, e.rho_low, e.rho_high)
    return [_subject(e.experiment), marks.retention("banked").span, f": ρ {span}, floor {numbers.share(e.floor)}"]


def _gate(e: ev.GateDecided, _: ev.Record) -> list[Part]:
    failed = [c.name for c in e.checks if not c.passed]
    mark = marks.Mark("✓", "passes", "good") if e.promoted else marks.Mark("⊘", "refuses", "bad")
    why = f" (failed: {', '.join(failed)})" if failed else ""
    unchecked = f"; not checked: {', '.join(e.not_checked)}" if e.not_checked else ""
    return [_subject(e.experiment), (f"{e.gate} ", "muted"), mark.span, f"{why}: {one_line(e.reason)}{unchecked}"]


def _promoted(e: ev.Promoted, _: ev.Record) -> list[Part]:
    speed = f"{numbers.times(e.speedup)} over the baseline, {numbers.duration_us(e.champion_us)}"
    return [_subject(e.experiment), marks.Mark("★", f"promotion {e.number}", "good").span, f": champion {numbers.short(e.sha256)}, {speed}"]


def _world_model(e: ev.WorldModelEdited, _: ev.Record) -> list[Part]:
    moved = ", ".join(f"{c.claim} {_confidence(c.before)} → {c.after:.2f}" for c in e.changes)
    return [("world model ", "accent"), f"{e.lines} lines", f": {moved}" if moved else "", f"; {one_line(e.why)}" if e.why else ""]


def _nudge(e: ev.NudgeQueued, _: ev.Record) -> list[Part]:
    return [("nudge ", "accent"), f"{e.nudge} queued: {one_line(e.text)}"]


def _nudge_receipt(e: ev.NudgeDelivered | ev.NudgeAcknowledged, _: ev.Record) -> list[Part]:
    return [("nudge ", "accent"), f"{e.nudge} {'delivered' if isinstance(e, ev.NudgeDelivered) else 'acknowledged'}"]


def _agent(e: ev.AgentFinished, _: ev.Record) -> list[Part]:
    return [] if e.outcome == "done" else [(f"{e.agent} {e.outcome}", "warn"), f": {one_line(e.detail)}" if e.detail else ""]


def _note(e: ev.Note, _: ev.Record) -> list[Part]:
    return [(f"{e.level} ", "muted" if e.level == "info" else "warn"), one_line(e.text, limit=400)]


def _subject(experiment: str | None) -> Part:
    return (f"{experiment} ", "strong") if experiment else ""


def _confidence(value: float | None) -> str:
    return "new" if value is None else f"{value:.2f}"


_TELLERS: dict[type[Any], Callable[[Any, ev.Record], list[Part]]] = {
    ev.RunCreated: _created,
    ev.RunResumed: _resumed,
    ev.RunControl: _control,
    ev.RunStateChanged: _state,
    ev.JobStarted: _started,
    ev.JobFinished: _finished,
    ev.JobVoided: _voided,
    ev.AgentFinished: _agent,
    ev.IdeaProposed: _idea,
    ev.ExperimentOpened: _opened,
    ev.CandidateSubmitted: _submitted,
    ev.ExperimentReported: _reported,
    ev.ExperimentReconciled: _reconciled,
    ev.WorldModelEdited: _world_model,
    ev.Banked: _banked,
    ev.GateDecided: _gate,
    ev.Promoted: _promoted,
    ev.NudgeQueued: _nudge,
    ev.NudgeDelivered: _nudge_receipt,
    ev.NudgeAcknowledged: _nudge_receipt,
    ev.Note: _note,
}
