"""Points of the trend plot: the champion's speed-up over the run.

Invariant: at most `LIMIT` points, all finite and positive, so that no plot can fail on them.
Not for: drawing (`console.app.widgets.trend`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from console.views.numbers import elapsed_s
from state.model import RunState

LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A step line: minutes since the start against speed-up over the baseline."""

    minutes: tuple[float, ...]
    speedups: tuple[float, ...]


def trend(state: RunState) -> Trend:
    """Build the champion's steps, from 1 at the start to the last record."""
    points = [(0.0, 1.0)]
    for promotion in state.promotions:
        at = elapsed_s(state.started_ts, promotion.ts) / 60
        points += [(at, points[-1][1]), (at, promotion.speedup)]
    points.append((elapsed_s(state.started_ts, state.last_ts) / 60, points[-1][1]))
    usable = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y) and y > 0]
    kept = thinned(usable)
    return Trend(minutes=tuple(x for x, _ in kept), speedups=tuple(y for _, y in kept))


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep at most `LIMIT` points, evenly, the last always among them."""
    if len(points) <= LIMIT:
        return points
    stride = math.ceil(len(points) / (LIMIT - 1))
    return [*points[::stride], points[-1]][:LIMIT]
