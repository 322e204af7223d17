"""Numbers as people read them: times, speed-ups, intervals, shares, moments.

Invariant: an unknown value is a dash or the word "unknown", never 0; units are always written.
Not for: computing anything.
"""

from __future__ import annotations

import math
from datetime import datetime

DASH = "—"


def duration_us(value: float | None) -> str:
    """Format microseconds with three significant digits in the unit that suits: `912 µs`, `1.84 ms`."""
    if value is None or not math.isfinite(value):
        return DASH
    if value < 999.5:
        return f"{_three(value)} µs"
    if value < 999_500:
        return f"{_three(value / 1e3)} ms"
    return f"{_three(value / 1e6)} s"


def times(value: float | None) -> str:
    """Format a speed-up: `1.83×`."""
    return DASH if value is None else f"{_three(value)}×"


def times_range(low: float | None, high: float | None) -> str:
    """Format an interval of a speed-up: `1.20–1.60×`."""
    return DASH if low is None or high is None else f"{low:.2f}–{high:.2f}×"


def ratio(value: float | None) -> str:
    """Format rho or a slot bias: `0.9132`."""
    return DASH if value is None else f"{value:.4f}"


def ratio_with(value: float | None, low: float | None, high: float | None) -> str:
    """Format a ratio and its interval: `0.9132 [0.9051, 0.9210]`."""
    if value is None:
        return DASH
    return ratio(value) if low is None or high is None else f"{value:.4f} [{low:.4f}, {high:.4f}]"


def share(value: float | None) -> str:
    """Format a relative difference: `1.25 %`."""
    return DASH if value is None else f"{value * 100:.2f} %"


def count(value: int | None) -> str:
    """Format a count of tokens or records: `950`, `12.3k`, `4.56M`; unknown stays unknown."""
    if value is None:
        return "unknown"
    if value < 1_000:
        return str(value)
    return f"{_three(value / 1e3)}k" if value < 999_500 else f"{_three(value / 1e6)}M"


def money(value: float | None) -> str:
    """Format dollars; an unknown price is the word."""
    return "unknown" if value is None else f"${value:.2f}"


def seconds(value: float) -> str:
    """Format a length of time: `8.2 s`, `3 min 12 s`, `2 h 05 min`."""
    if value < 60:
        return f"{value:.1f} s"
    if value < 3_600:
        return f"{int(value) // 60} min {int(value) % 60:02d} s"
    return f"{int(value) // 3_600} h {int(value) % 3_600 // 60:02d} min"


def elapsed_s(start: str, ts: str) -> float:
    """Seconds between two RFC 3339 moments; 0 where one cannot be read."""
    try:
        return (datetime.fromisoformat(ts) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def offset(start: str, ts: str) -> str:
    """Format the moment `ts` as time since `start`: `+02:15`, `+1:02:15`."""
    total = max(int(elapsed_s(start, ts)), 0)
    hours, rest = divmod(total, 3_600)
    return f"+{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"+{rest // 60:02d}:{rest % 60:02d}"


def short(sha256: str | None) -> str:
    """Format a content address: its first ten digits, or `reference` for None."""
    return "reference" if sha256 is None else sha256[:10]


def _three(value: float) -> str:
    if value == 0:
        return "0"
    value = float(f"{value:.3g}")
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"
