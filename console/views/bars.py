"""Intervals drawn as text: `   ├──●──┤   │` on a logarithmic axis.

Invariant: a bar is exactly `width` cells wide and never raises: what lies outside the axis is
clamped to its edge, and values that no measurement gives (not positive, not finite) draw nothing.
Not for: choosing the numbers, or plots with axes (`console.app.widgets.trend`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_SMALLEST, _LARGEST = 1e-9, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The span of ratios that a bar covers, both ends positive."""

    low: float
    high: float

    def cell(self, value: float, width: int) -> int | None:
        """Column of `value` in a bar of `width` cells; None where it cannot be placed."""
        if not _drawable(value):
            return None
        where = math.log(value / self.low) / math.log(self.high / self.low)
        return min(max(round(where * (width - 1)), 0), width - 1)


def axis_over(values: Iterable[float | None]) -> Axis:
    """Return the axis that holds every usable value and 1, with a margin of a twentieth at each end."""
    usable = [v for v in values if v is not None and _drawable(v)]
    low, high = min([*usable, 0.99]), max([*usable, 1.01])
    margin = (high / low) ** 0.05
    return Axis(low=low / margin, high=high * margin)


def interval(low: float | None, mid: float | None, high: float | None, *, axis: Axis, width: int, band: float | None = None) -> str:
    """Draw an interval, the mark of 1 and, where given, the floor `band` around it."""
    cells = [" "] * max(width, 1)
    if band:
        _fill(cells, axis.cell(1 - min(band, 0.99), width), axis.cell(1 + band, width), "░")
    _put(cells, axis.cell(1.0, width), "│")
    if low is not None and high is not None:
        left, right = axis.cell(low, width), axis.cell(high, width)
        _fill(cells, left, right, "─")
        _put(cells, left, "├")
        _put(cells, right, "┤")
    if mid is not None:
        _put(cells, axis.cell(mid, width), "●")
    return "".join(cells)


def scale(axis: Axis, *, width: int) -> str:
    """Draw the legend under a group of bars: both ends and 1."""
    cells = list(f"{axis.low:.3g}".ljust(width - 6) + f"{axis.high:.3g}".rjust(6))
    unit = axis.cell(1.0, width)
    if unit is not None and 6 <= unit <= width - 8:
        cells[unit] = "1"
    return "".join(cells[:width])


def sparkline(values: list[float], *, width: int) -> str:
    """Draw the last `width` values as block characters between their minimum and maximum."""
    shown = [v for v in values if math.isfinite(v)][-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    blocks = "▁▂▃▄▅▆▇█"
    return "".join(blocks[0 if high == low else round((v - low) / (high - low) * 7)] for v in shown)


def _drawable(value: float) -> bool:
    """Whether a ratio is one that a measurement could give; anything else would only stretch the axis."""
    return _SMALLEST <= value <= _LARGEST


def _put(cells: list[str], index: int | None, char: str) -> None:
    if index is not None:
        cells[index] = char


def _fill(cells: list[str], left: int | None, right: int | None, char: str) -> None:
    if left is not None and right is not None:
        for index in range(left, right + 1):
            cells[index] = char
