"""The experiment table of a run: one row an experiment, newest first.

Invariant: prediction and measurement are in one unit, the ratio t_champion / t_candidate, so that
they can be compared at a glance; what was not measured is a dash.
Not for: one experiment in full (`console.views.experiment`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from console.views import marks, numbers
from console.views.doc import Column, Line, Span, Tone, header, row_of
from console.views.marks import Mark
from state.model import Experiment, RunState

COLUMNS = (
    Column(title="id", width=4),
    Column(title="title", width=12, grows=True),
    Column(title="stage", width=10),
    Column(title="rung", width=4, right=True, rank=1),
    Column(title="status", width=15),
    Column(title="speed", width=6, right=True),
    Column(title="predicted", width=11, right=True),
    Column(title="measured", width=8, right=True),
    Column(title="kept", width=10, rank=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow:
    """One experiment as the table shows it."""

    id: str
    title: str
    stage: Mark
    rung: int
    status: Mark
    speedup: float | None
    """Over the reference, from its evaluation."""
    predicted: tuple[float, float] | None
    """Over the champion of its moment, geometric mean over cases."""
    measured: float | None
    retention: Mark

    def line(self, *, width: int) -> Line:
        """Lay the row out."""
        low, high = self.predicted or (None, None)
        cells = [
            Span(self.id, "strong"),
            Span(self.title),
            Span(self.stage.word, self.stage.tone),
            Span(str(self.rung) if self.rung else numbers.DASH),
            self.status.span,
            Span(numbers.times(self.speedup)),
            Span(numbers.times_range(low, high)),
            Span(numbers.times(self.measured), _against(self.measured, self.predicted)),
            self.retention.span,
        ]
        return row_of(cells, COLUMNS, width=width)


def table_header(*, width: int) -> Line:
    """Build the title row."""
    return header(COLUMNS, width=width)


def rows(state: RunState) -> list[ExperimentRow]:
    """Build every row, newest first."""
    return [row(e) for e in sorted(state.experiments.values(), key=lambda e: -e.opened_seq)]


def row(experiment: Experiment) -> ExperimentRow:
    """Build the row of one experiment."""
    evaluation = experiment.evaluation
    return ExperimentRow(
        id=experiment.id,
        title=experiment.title,
        stage=marks.stage(experiment.stage),
        rung=experiment.rung,
        status=marks.of_experiment(experiment),
        speedup=evaluation.speedup if evaluation and evaluation.status == "ok" else None,
        predicted=predicted(experiment),
        measured=measured(experiment),
        retention=marks.retention(experiment.retention),
    )


def predicted(experiment: Experiment) -> tuple[float, float] | None:
    """Return the geometric mean over cases of the predicted interval's ends."""
    low, high = geomean(b.low for b in experiment.prediction), geomean(b.high for b in experiment.prediction)
    return None if low is None or high is None else (low, high)


def measured(experiment: Experiment) -> float | None:
    """Return what came of it in the prediction's unit: reconciled, else the A/B's, else nothing."""
    settled = geomean(c.measured for c in experiment.reconciliation if c.measured is not None)
    if settled is not None:
        return settled
    verdict = experiment.verdict
    return 1 / verdict.rho if verdict and verdict.rho else None


def geomean(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean of positive values; None where there is none or one is not positive."""
    kept = [v for v in values if v is not None]
    if not kept or min(kept) <= 0:
        return None
    return math.exp(sum(math.log(v) for v in kept) / len(kept))


def _against(value: float | None, interval: tuple[float, float] | None) -> Tone:
    if value is None or interval is None:
        return "plain"
    return "good" if interval[0] <= value <= interval[1] else "warn"
