"""The list of runs a daemon holds.

Invariant: built from the daemon's list alone; a field it does not send is a dash.
Not for: one run (`console.views.headline`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.views import marks, numbers
from console.views.doc import Column, Line, Span, header, row_of

COLUMNS = (
    Column(title="run", width=34, grows=True),
    Column(title="problem", width=16),
    Column(title="state", width=12),
    Column(title="speed-up", width=8, right=True),
    Column(title="promotions", width=10, right=True, rank=2),
    Column(title="title", width=18, rank=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run as the list shows it."""

    run: str
    title: str
    problem: str
    status: str
    speedup: float | None
    promotions: int

    def line(self, *, width: int) -> Line:
        """Lay the row out."""
        cells = [
            Span(self.run, "strong"),
            Span(self.problem),
            marks.run(self.status).span,
            Span(numbers.times(self.speedup)),
            Span(str(self.promotions)),
            Span(self.title, "muted"),
        ]
        return row_of(cells, COLUMNS, width=width)


def table_header(*, width: int) -> Line:
    """Build the title row."""
    return header(COLUMNS, width=width)


def rows(listed: Sequence[Mapping[str, Any]]) -> list[RunRow]:
    """Build the rows of what the daemon listed, in its order."""
    return [_row(entry) for entry in listed if isinstance(entry.get("run"), str)]


def _row(entry: Mapping[str, Any]) -> RunRow:
    speedup, promotions = entry.get("speedup"), entry.get("promotions")
    return RunRow(
        run=str(entry["run"]),
        title=str(entry.get("title") or ""),
        problem=str(entry.get("problem") or numbers.DASH),
        status=str(entry.get("status") or "new"),
        speedup=float(speedup) if isinstance(speedup, (int, float)) else None,
        promotions=promotions if isinstance(promotions, int) else len(promotions or []),
    )
