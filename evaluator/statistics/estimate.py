"""A point estimate with its bootstrap interval, and the one place that resamples.

Invariant: the interval is a two-sided percentile interval from `scipy.stats.bootstrap` over whole
units (blocks or pairs, never single trials), and it always contains the point.
Not for: deciding anything from the interval (`evaluator.statistics.decision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluator.records import Interval

RESAMPLES = 2000
LEVEL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and how well it is known."""

    value: float
    interval: Interval
    seed: int
    """Of the resampling: the interval can be computed again from the same data."""
    resamples: int = RESAMPLES


def positive(values: Sequence[float] | Floats, *, what: str) -> Floats:
    """Return `values` as a float64 array; anything but positive finite numbers is a ValueError.

    Zero, NaN and underflow are refused here so that no aggregate can be pulled down by one of them.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError(f"{what}: no values")
    if not np.all(np.isfinite(array)) or np.any(array <= np.finfo(np.float64).tiny):
        raise ValueError(f"{what}: every value must be a positive finite number")
    return array


def bootstrap(
    units: Sequence[int],
    statistic: Callable[..., float],
    *,
    seed: int,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Percentile bootstrap of a statistic of several independent samples of units.

    `units` holds the number of units of every sample (at least 2 each). `statistic` is called with one
    integer index array per sample, of that sample's length, and returns the figure of the chosen units.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; computed by
    `scipy.stats.bootstrap(method="percentile")`. The interval is widened to the point where a skewed
    resampling distribution leaves it outside.
    """
    if any(count < 2 for count in units):
        raise ValueError("an interval needs at least two units in every sample")
    indices = tuple(np.arange(count) for count in units)
    point = float(statistic(*indices))
    found = stats.bootstrap(
        indices,
        lambda *chosen: statistic(*(c.astype(np.intp) for c in chosen)),
        vectorized=False,
        method="percentile",
        n_resamples=resamples,
        confidence_level=level,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    interval = Interval(low=min(float(found.low), point), high=max(float(found.high), point), level=level)
    return Estimate(value=point, interval=interval, seed=seed, resamples=resamples)
