"""Speed-up of a candidate over the reference, from interleaved blocks of trials.

A block is a few trials in a row of one side; block i of the reference and block i of the candidate
are partners, run next to each other. Whole partner blocks are resampled together, because trials
inside a block share the machine's mood and partners share its drift.
Invariant: speed-up = median of all reference trials / median of all candidate trials; > 1 is faster.
Not for: A/B ratios (`evaluator.statistics.pairs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.statistics.estimate import LEVEL, RESAMPLES, Estimate, Floats, bootstrap, positive
from evaluator.statistics.spread import geomean


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBlocks:
    """Trial times of one case, microseconds: `ref[i]` and `cand[i]` are partner blocks of any sizes."""

    ref: Sequence[Sequence[float]]
    cand: Sequence[Sequence[float]]
    alone_us: float | None = None
    """Median of the reference while no candidate exists; where it is faster than the interleaved one, it counts."""


class _Trials:
    """Both sides of one case, flat, so that a choice of blocks is two gathers and two medians."""

    def __init__(self, blocks: CaseBlocks) -> None:
        if len(blocks.ref) != len(blocks.cand):
            raise ValueError(f"{len(blocks.ref)} reference blocks have {len(blocks.cand)} partners")
        self.count = len(blocks.ref)
        self._alone = np.inf if blocks.alone_us is None else float(positive([blocks.alone_us], what="reference alone")[0])
        self._ref = [positive(block, what="reference block") for block in blocks.ref]
        self._cand = [positive(block, what="candidate block") for block in blocks.cand]

    def ratio(self, chosen: Sequence[int]) -> float:
        """Speed-up over the chosen partner blocks (indices may repeat)."""
        reference = min(_median(self._ref, chosen), self._alone)
        return float(reference / _median(self._cand, chosen))

    def mean_ratio(self) -> float:
        reference = np.concatenate(self._ref)
        scale = min(1.0, self._alone / float(np.median(reference)))
        return float(reference.mean() * scale / np.concatenate(self._cand).mean())


def speedup(blocks: CaseBlocks, *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES) -> Estimate:
    """Median speed-up of one case with a block-bootstrap interval; at least 2 partner blocks.

    Trials of a large block weigh more than those of a small one in the point and in every resample
    alike: each resample pools the trials of the blocks it drew and takes the median of the pool.
    """
    return geomean_speedup([blocks], seed=seed, level=level, resamples=resamples)


def geomean_speedup(cases: Sequence[CaseBlocks], *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES) -> Estimate:
    """Geometric mean over cases of the median speed-up, with its interval.

    Every resample draws blocks anew in each case (jointly for both sides of the case, independently
    between cases), computes each case's ratio of medians and takes their geometric mean.
    """
    sides = [_Trials(case) for case in cases]
    if not sides:
        raise ValueError("no cases")

    def statistic(*chosen: Sequence[int]) -> float:
        return geomean([side.ratio(indices) for side, indices in zip(sides, chosen, strict=True)])

    return bootstrap([side.count for side in sides], statistic, seed=seed, level=level, resamples=resamples)


def mean_speedup(blocks: CaseBlocks) -> float:
    """Ratio of mean trial times (reported beside the median; outliers show in the difference)."""
    return _Trials(blocks).mean_ratio()


def _median(blocks: list[Floats], chosen: Sequence[int]) -> float:
    return float(np.median(np.concatenate([blocks[i] for i in chosen])))
