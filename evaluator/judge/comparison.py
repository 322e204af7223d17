"""Symmetric A/B of two sources, and A/A of one: counterbalanced pairs on one lease.

A forward pair times the candidate first, a backward pair the champion first; every call gets fresh
inputs and a cold cache, and outputs are verified at random afterwards. The decision rule is fixed
before the data (`evaluator.statistics.decide`).
Not for: promotion, or for choosing which rung is next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evaluator.judge.evaluation import choose_slots, open_case, prepare_both
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.timing import EMPTY_CALLS, warm_up
from evaluator.judge.trial import Bench
from evaluator.protocol import blocks
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.statistics import PairedRatios, relative_iqr

SMALLEST_US = 1e-3
"""A time below a nanosecond cannot be: it is kept at that, so that no ratio is zero."""


@dataclass(slots=True)
class CasePairs:
    """Every pair of one case, candidate's call first in each tuple, whichever ran first."""

    case: str
    overhead: Overhead = field(default_factory=Overhead)
    forward: list[tuple[Call, Call]] = field(default_factory=list)
    backward: list[tuple[Call, Call]] = field(default_factory=list)

    def by_events(self) -> PairedRatios:
        """r of every pair by the runners' own clocks."""
        return self._ratios(lambda call: call.event_us + call.late_us)

    def by_wall(self) -> PairedRatios:
        """r of every pair by the judge's clock alone, overhead subtracted."""
        overhead = self.overhead.overhead_us()
        return self._ratios(lambda call: call.wall_us - overhead + call.late_us)

    def medians_us(self) -> tuple[float, float]:
        """Median trial time, max(event, wall - overhead), of candidate and champion."""
        overhead = self.overhead.overhead_us()
        sides = zip(*(self.forward + self.backward), strict=True)
        candidate, champion = (float(np.median([max(c.event_us, c.wall_us - overhead) + c.late_us for c in side])) for side in sides)
        return candidate, champion

    def slowed(self, alone: list[Call]) -> float:
        """How many times as long the champion took here as in `alone`, by the judge's clock."""
        beside = [champion.wall_us for _, champion in self.forward + self.backward]
        return float(np.median(beside) / np.median([call.wall_us for call in alone]))

    def spread(self) -> float:
        """Relative interquartile range of the champion's single trials by events."""
        return relative_iqr([max(SMALLEST_US, champion.event_us) for _, champion in self.forward + self.backward])

    def _ratios(self, time_us: Callable[[Call], float]) -> PairedRatios:
        def ratio(upper: Call, lower: Call) -> float:
            return max(SMALLEST_US, time_us(upper)) / max(SMALLEST_US, time_us(lower))

        forward = [ratio(candidate, champion) for candidate, champion in self.forward]
        backward = [ratio(champion, candidate) for candidate, champion in self.backward]
        return PairedRatios(forward=forward, backward=backward)


def measure_alone(setting: Setting, bench: Bench, champion: Runner, *, trials: int) -> dict[str, list[Call]]:
    """The champion's calls by case as it runs by itself: before a candidate exists, or after it is gone."""
    alone = {}
    for name in setting.cases():
        prepare_both(bench, open_case(setting, bench, name, timed=True), champion)
        warm_up(bench, champion)
        bench.begin_turn(champion)
        alone[name] = [bench.trial(champion) for _ in range(trials)]
    return alone


def measure_pairs(setting: Setting, bench: Bench, *, candidate: Runner, champion: Runner, reference: Runner, pairs: int) -> list[CasePairs]:
    """`pairs` counterbalanced pairs in each order for every case. `reference` only ever gives the overhead."""
    measured = []
    for name in setting.cases():
        case = open_case(setting, bench, name, timed=True)
        choose_slots(setting, bench, reference, case)
        runners = dict.fromkeys((candidate, champion, reference))
        prepare_both(bench, case, *runners)
        for runner in runners:
            warm_up(bench, runner)
        result = CasePairs(name)
        result.overhead.before = [bench.empty(reference).wall_us for _ in range(EMPTY_CALLS)]
        orders = blocks.counterbalanced(pairs)
        for index, forward in enumerate(orders):
            result_side = result.forward if forward else result.backward
            result_side.append(_pair(bench, candidate, champion, forward=forward))
            if index % 4 == 3:
                result.overhead.interleaved.append(bench.empty(reference).wall_us)
                setting.progress("pairs", f"case {name}", index + 1, len(orders))
        measured.append(result)
    return measured


def _pair(bench: Bench, candidate: Runner, champion: Runner, *, forward: bool) -> tuple[Call, Call]:
    calls = {}
    for runner in (candidate, champion) if forward else (champion, candidate):
        bench.begin_turn(runner)
        calls[runner.name] = bench.trial(runner)
    return calls[candidate.name], calls[champion.name]
