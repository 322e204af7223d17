"""Symmetric A/B: the ratio of two candidates, free of slot bias, from counterbalanced pairs.

r = time in slot 1 / time in slot 2. Forward pairs run the candidate first, r_fwd = rho * c; backward
pairs the champion first, r_bwd = c / rho. So rho = sqrt(r_fwd / r_bwd) = t_candidate / t_champion
(< 1 is faster) and the slot bias c = sqrt(r_fwd * r_bwd) (1 is none).
Two processes of the very same source differ by several per cent for as long as they live, by where their
memory lies (physical pages, alignment). So both sides are started anew several times, and the interval
covers what differs between starts, not only between pairs of one.
Invariant: rho does not change when every slot-1 time is multiplied by the same factor, and swapping
the sides inverts it.
Not for: the decision (`evaluator.statistics.decision`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluator.records import Interval
from evaluator.statistics.estimate import LEVEL, RESAMPLES, Floats, bootstrap, positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatios:
    """r of one case, shape (n,) each, no unit: `forward[i]` and `backward[i]` are one counterbalanced pair."""

    forward: Sequence[float]
    """Candidate in slot 1: t_candidate / t_champion of pair i."""
    backward: Sequence[float]
    """Champion in slot 1: t_champion / t_candidate of pair i."""
    starts: Sequence[int] = ()
    """Which start of the two processes pair i belongs to; empty: there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEstimate:
    """rho and slot bias of one case or of several."""

    rho: float
    rho_ci: Interval
    slot_bias: float
    slot_bias_ci: Interval
    pairs: int
    """Counterbalanced pairs, the smallest number over cases."""
    seed: int


def pair_ratio(ratios: PairedRatios, *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES) -> PairEstimate:
    """rho and c of one case: medians over pairs, bootstrap over whole pairs (at least 2)."""
    return geomean_pairs([ratios], seed=seed, level=level, resamples=resamples)


def geomean_pairs(cases: Sequence[PairedRatios], *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES) -> PairEstimate:
    """Geometric means over cases of rho and of c, with their intervals.

    rho of a case and a start is the median over its pairs of sqrt(r_fwd / r_bwd), computed on logarithms so that
    swapping the sides inverts it exactly; over starts and cases their mean counts. The interval is a bootstrap's that
    draws pairs anew in each case and start; where there were several starts, it is widened to the t interval of
    their means (Student 1908), which few starts make as wide as it must be.
    """
    if not cases:
        raise ValueError("no cases")
    starts = [_by_start(case) for case in cases]
    if len({len(case) for case in starts}) > 1:
        raise ValueError("the cases were not started equally often")
    logs = [_logs(case) for case in cases]
    halves = [half[rows] for (half, _), case in zip(logs, starts, strict=True) for rows in case]
    rho = _between(halves, len(starts[0]), level, _log_estimate(halves, seed=seed, level=level, resamples=resamples))
    bias = _log_estimate([half_sum for _, half_sum in logs], seed=seed, level=level, resamples=resamples)
    return PairEstimate(
        rho=rho[0],
        rho_ci=rho[1],
        slot_bias=bias[0],
        slot_bias_ci=bias[1],
        pairs=min(len(half) for half, _ in logs),
        seed=seed,
    )


def _logs(case: PairedRatios) -> tuple[Floats, Floats]:
    """ln rho and ln c of every pair."""
    if len(case.forward) != len(case.backward):
        raise ValueError(f"{len(case.forward)} forward pairs against {len(case.backward)} backward")
    forward = np.log(positive(case.forward, what="forward ratios"))
    backward = np.log(positive(case.backward, what="backward ratios"))
    return (forward - backward) / 2, (forward + backward) / 2


def _log_estimate(samples: list[Floats], *, seed: int, level: float, resamples: int) -> tuple[float, Interval]:
    def statistic(*chosen: Sequence[int]) -> float:
        return float(np.mean([np.median(sample[indices]) for sample, indices in zip(samples, chosen, strict=True)]))

    found = bootstrap([len(sample) for sample in samples], statistic, seed=seed, level=level, resamples=resamples)
    interval = Interval(low=float(np.exp(found.interval.low)), high=float(np.exp(found.interval.high)), level=level)
    return float(np.exp(found.value)), interval


def _by_start(case: PairedRatios) -> list[NDArray[np.intp]]:
    """Indices of each start's pairs."""
    if not case.starts:
        return [np.arange(len(case.forward))]
    starts = np.asarray(case.starts)
    if len(starts) != len(case.forward):
        raise ValueError(f"{len(case.forward)} pairs of {len(starts)} starts")
    return [np.flatnonzero(starts == start) for start in np.unique(starts)]


def _between(halves: list[Floats], starts: int, level: float, within: tuple[float, Interval]) -> tuple[float, Interval]:
    """The interval of `within` widened to what differs between starts; `halves` are the cases' starts, case by case."""
    if starts < 2:
        return within
    medians = np.array([np.median(half) for half in halves]).reshape(-1, starts)
    means = medians.mean(axis=0)
    reach = float(stats.t.ppf((1 + level) / 2, starts - 1) * means.std(ddof=1) / np.sqrt(starts))
    value, interval = within
    low, high = value * float(np.exp(-reach)), value * float(np.exp(reach))
    return value, Interval(low=min(low, interval.low), high=max(high, interval.high), level=level)
