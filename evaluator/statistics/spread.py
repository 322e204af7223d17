"""Simple figures of one sample: quantiles, spread, geometric mean.

Invariant: every function takes positive finite times and refuses anything else.
Not for: intervals (`evaluator.statistics.estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from evaluator.statistics.estimate import positive

LOW = 0.1


def low_quantile(times_us: Sequence[float], *, quantile: float = LOW) -> float:
    """Low quantile of a sample, microseconds; shape (n,), n >= 1.

    A low quantile and not the minimum: one lucky reading must not become what is subtracted from all.
    Linear interpolation (Hyndman & Fan 1996, type 7; `numpy.quantile`'s default).
    """
    return float(np.quantile(positive(times_us, what="times"), quantile))


def overhead(before_us: Sequence[float], interleaved_us: Sequence[float], *, quantile: float = LOW) -> float:
    """Cost of an empty request, microseconds: the smaller of both low quantiles.

    Both samples come from the trusted runner: one from before any candidate exists, one interleaved.
    The smaller is taken so that load on the machine can never grow what is subtracted.
    """
    return min(low_quantile(before_us, quantile=quantile), low_quantile(interleaved_us, quantile=quantile))


def relative_iqr(times_us: Sequence[float]) -> float:
    """Interquartile range divided by the median, no unit; shape (n,), n >= 1."""
    array = positive(times_us, what="times")
    return float(stats.iqr(array) / np.median(array))


def geomean(values: Sequence[float]) -> float:
    """Geometric mean of positive finite numbers, shape (n,), n >= 1 (`scipy.stats.gmean`)."""
    return float(stats.gmean(positive(values, what="values")))
