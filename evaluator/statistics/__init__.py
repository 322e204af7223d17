"""What measured times mean: speed-ups, ratios, intervals, decisions, audits. Pure functions.

Invariant: the same data and the same seed give the same figures; a time that is not a positive
finite number is a ValueError, never a figure. All times are microseconds unless a name says otherwise.
Not for: measuring, or for choosing which blocks count (a block is voided before its times are read).
"""

from evaluator.statistics.audit import Agreement, Ruling, audit_blocks, trial_times
from evaluator.statistics.decision import decide, noise_floor
from evaluator.statistics.estimate import LEVEL, RESAMPLES, Estimate
from evaluator.statistics.pairs import PairedRatios, PairEstimate, geomean_pairs, pair_ratio
from evaluator.statistics.speedup import CaseBlocks, geomean_speedup, mean_speedup, speedup
from evaluator.statistics.spread import geomean, low_quantile, overhead, relative_iqr

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "Agreement",
    "CaseBlocks",
    "Estimate",
    "PairEstimate",
    "PairedRatios",
    "Ruling",
    "audit_blocks",
    "decide",
    "geomean",
    "geomean_pairs",
    "geomean_speedup",
    "low_quantile",
    "mean_speedup",
    "noise_floor",
    "overhead",
    "pair_ratio",
    "relative_iqr",
    "speedup",
    "trial_times",
]
