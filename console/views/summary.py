"""What a run came to: the closing table of plain mode and the one JSON object of `--json`.

`Tally` counts outcomes from records, because an experiment's state keeps only its latest outcome of
each kind and a compile error that was mended is still an outcome of the run.
Invariant: every figure comes from a record; a candidate is counted once, under the worst it showed.
Not for: the story line by line (`console.views.story`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from console.views import marks, numbers
from console.views.doc import BLANK, Line, Part, heading, line, pair
from console.views.records import typed
from evaluator.records import Claim, Result
from state.events import JobFinished, Record
from state.model import RunState

_JUDGED = frozenset({"check", "evaluate", "ab", "robustness"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One candidate that did not pass."""

    experiment: str
    title: str
    status: str
    message: str
    sha256: str
    claimed_speedup: float | None = None
    """What a naive evaluator would have credited it with, believing it correct."""


@dataclass
class Tally:
    """Candidates that did not pass, by content address, in the order they were judged."""

    misses: dict[str, Miss] = field(default_factory=dict)

    def apply(self, record: Record, state: RunState) -> None:
        """Count one record, given the state right after it."""
        if record.kind != "job.finished":
            return
        event = typed(record)
        if isinstance(event, JobFinished):
            self._count(event, state)

    def _count(self, event: JobFinished, state: RunState) -> None:
        result = event.result
        if result.kind.value not in _JUDGED or result.status.value in ("ok", "evaluator_error"):
            return
        key, experiment = result.source_sha256 or event.request, event.experiment or ""
        known = state.experiments.get(experiment)
        claimed = _believed(result)
        old = self.misses.get(key)
        if old is not None and claimed is None and result.status.value not in marks.REFUSED:
            return
        self.misses[key] = Miss(
            experiment=experiment,
            title=known.title if known else "",
            status=result.status.value,
            message=result.message,
            sha256=key,
            claimed_speedup=claimed if claimed is not None or old is None else old.claimed_speedup,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One promotion or one banked experiment."""

    experiment: str
    title: str
    sha256: str | None
    speedup: float | None
    rho: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to."""

    run: str
    problem: str
    status: str
    reason: str
    """Why the run is in this state, in words."""
    gate: str
    qualification: str
    elapsed_s: float
    baseline_us: float | None
    compiled_us: float | None
    champion_us: float | None
    speedup: float
    promotions: tuple[Kept, ...]
    banked: tuple[Kept, ...]
    incorrect: tuple[Miss, ...]
    compile_errors: tuple[Miss, ...]
    refused: tuple[Miss, ...]
    failed: tuple[Miss, ...]
    """Runtime errors and timeouts."""
    unresolved: tuple[Kept, ...]
    predictions_made: int
    predictions_reconciled: int

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        data = asdict(self)
        made, reconciled = data.pop("predictions_made"), data.pop("predictions_reconciled")
        return {**data, "predictions": {"made": made, "reconciled": reconciled}}


def summarize(state: RunState, tally: Tally) -> Summary:
    """Build the summary of a run as of this state."""
    misses = list(tally.misses.values())
    refused = tuple(m for m in misses if _is_refused(m))
    rest = [m for m in misses if not _is_refused(m)]
    experiments = state.experiments.values()
    return Summary(
        run=state.run,
        problem=state.problem,
        status=state.status,
        reason=state.status_reason,
        gate=state.gate,
        qualification=state.qualification,
        elapsed_s=round(numbers.elapsed_s(state.started_ts, state.last_ts), 3),
        baseline_us=state.baseline_us,
        compiled_us=state.compiled_us,
        champion_us=state.champion_us if state.champion else state.baseline_us,
        speedup=state.speedup,
        promotions=tuple(
            Kept(experiment=p.experiment, title=_title(state, p.experiment), sha256=p.sha256, speedup=p.speedup, rho=p.rho)
            for p in state.promotions
        ),
        banked=tuple(_kept(state, e.id) for e in experiments if e.retention == "banked"),
        incorrect=tuple(m for m in rest if m.status == "incorrect"),
        compile_errors=tuple(m for m in rest if m.status == "compile_error"),
        refused=refused,
        failed=tuple(m for m in rest if m.status not in ("incorrect", "compile_error")),
        unresolved=tuple(_kept(state, e.id) for e in experiments if _is_unresolved(state, e.id)),
        predictions_made=sum(1 for e in experiments if e.prediction),
        predictions_reconciled=sum(1 for e in experiments if e.stage == "reconciled"),
    )


def table(summary: Summary) -> list[Line]:
    """Build the closing table."""
    return [
        heading(f"{summary.run} on {summary.problem}: {summary.status} after {numbers.seconds(summary.elapsed_s)}"),
        *([line((f"  {summary.reason}", "warn" if summary.status == "failed" else "muted"))] if summary.reason else []),
        pair("baseline", numbers.duration_us(summary.baseline_us), width=15),
        pair("compiled", numbers.duration_us(summary.compiled_us), width=15),
        pair("champion", numbers.duration_us(summary.champion_us), width=15),
        pair("speed-up", (numbers.times(summary.speedup), "good" if summary.speedup > 1 else "plain"), width=15),
        *_group("promotions", [_kept_words(k) for k in summary.promotions]),
        *_group("banked", [_kept_words(k) for k in summary.banked]),
        *_group("incorrect", [_miss_words(m) for m in summary.incorrect]),
        *_group("compile errors", [_miss_words(m) for m in summary.compile_errors]),
        *_group("refused", [_miss_words(m) for m in summary.refused]),
        *_group("failed", [_miss_words(m) for m in summary.failed]),
        *_group("unresolved", [_kept_words(k) for k in summary.unresolved]),
        pair("predictions", f"{summary.predictions_made} made, {summary.predictions_reconciled} reconciled", width=15),
        pair("gate", summary.gate or numbers.DASH, width=15),
        pair("evaluator", summary.qualification or "not qualified yet", width=15),
        BLANK,
    ]


def _group(label: str, entries: list[str]) -> list[Line]:
    first: Part = f"{len(entries)}" + (f"  {entries[0]}" if entries else "")
    return [pair(label, first, width=15), *(line(" " * 19 + entry) for entry in entries[1:])]


def _kept_words(kept: Kept) -> str:
    speed = f", {numbers.times(kept.speedup)}" if kept.speedup is not None else ""
    rho = f", ρ {numbers.ratio(kept.rho)}" if kept.rho is not None else ""
    return f"{kept.experiment} {kept.title}{speed}{rho}"


def _miss_words(miss: Miss) -> str:
    claim = f", claimed {numbers.times(miss.claimed_speedup)}" if miss.claimed_speedup is not None else ""
    return f"{miss.experiment} {miss.title}: {marks.status(miss.status).text}{claim}"


def _kept(state: RunState, key: str) -> Kept:
    experiment = state.experiments[key]
    evaluation, verdict = experiment.evaluation, experiment.verdict
    return Kept(
        experiment=key,
        title=experiment.title,
        sha256=experiment.final,
        speedup=evaluation.speedup if evaluation else None,
        rho=verdict.rho if verdict else None,
    )


def _title(state: RunState, experiment: str) -> str:
    known = state.experiments.get(experiment)
    return known.title if known else ""


def _is_unresolved(state: RunState, key: str) -> bool:
    experiment = state.experiments[key]
    verdict = experiment.verdict
    return verdict is not None and verdict.decision == "unresolved" and experiment.retention not in ("banked", "promoted")


def _is_refused(miss: Miss) -> bool:
    return miss.status in marks.REFUSED or miss.claimed_speedup is not None


def _believed(result: Result) -> float | None:
    """Speed-up that a naive evaluator would have credited, had it believed the candidate correct."""
    naive: Claim | None = result.evaluation.naive if result.evaluation else None
    return naive.speedup if naive and naive.correct and naive.speedup is not None else None
