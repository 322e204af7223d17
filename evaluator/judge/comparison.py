"""Symmetric A/B of two sources, and A/A of one: counterbalanced pairs on one lease, over several starts of both.

A forward pair times the candidate first, a backward pair the champion first; every call gets fresh
inputs and a cold cache, and outputs are verified at random afterwards. Both sides are started anew several
times, because two processes of one source differ for as long as they live. The decision rule is fixed
before the data (`evaluator.statistics.decide`).
Not for: promotion, or for choosing which rung is next.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from evaluator.judge.evaluation import choose_slots, open_case, prepare_both
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.timing import measure_overhead, warm_up
from evaluator.judge.trial import Bench
from evaluator.protocol import blocks
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.statistics import PairedRatios, geomean, relative_iqr

STARTS = 4
"""How often both sides are started; fewer where that would leave one with fewer than two pairs."""
SMALLEST_US = 1e-3
"""A time below a nanosecond cannot be: it is kept at that, so that no ratio is zero."""

Pair = tuple[Call, Call]
"""Candidate's call first, whichever ran first."""


@dataclass(slots=True)
class StartPairs:
    """The pairs of one case between one start of both sides and the next."""

    forward: list[Pair] = field(default_factory=list)
    backward: list[Pair] = field(default_factory=list)
    before: list[Call] = field(default_factory=list)
    """The champion by itself, before this start's candidate exists."""
    after: list[Call] = field(default_factory=list)
    """The same when it is gone."""

    def slowed(self) -> float:
        """How many times as long the champion took beside the candidate as by itself, by the judge's clock."""
        beside = np.median([champion.wall_us for _, champion in self.forward + self.backward])
        return float(min(beside / np.median([call.wall_us for call in alone]) for alone in (self.before, self.after)))


@dataclass(slots=True)
class CasePairs:
    """Every pair of one case."""

    case: str
    overhead: Overhead = field(default_factory=Overhead)
    starts: list[StartPairs] = field(default_factory=list)

    @property
    def pairs(self) -> list[Pair]:
        """All of them, in no order that means anything."""
        return [pair for start in self.starts for pair in (*start.forward, *start.backward)]

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
        sides = zip(*self.pairs, strict=True)
        candidate, champion = (float(np.median([max(c.event_us, c.wall_us - overhead) + c.late_us for c in side])) for side in sides)
        return candidate, champion

    def slack(self) -> float:
        """The factor on rho if the candidate had won the whole slack of every call."""
        candidate_us, _ = self.medians_us()
        return 1.0 + self.overhead.slack_us() / max(SMALLEST_US, candidate_us)

    def slowed(self) -> float:
        """How many times as long the champion took beside the candidate as by itself: the mean over starts."""
        return geomean([start.slowed() for start in self.starts])

    def spread(self) -> float:
        """Relative interquartile range of the champion's single trials by events."""
        return relative_iqr([max(SMALLEST_US, champion.event_us) for _, champion in self.pairs])

    def _ratios(self, time_us: Callable[[Call], float]) -> PairedRatios:
        def ratio(upper: Call, lower: Call) -> float:
            return max(SMALLEST_US, time_us(upper)) / max(SMALLEST_US, time_us(lower))

        return PairedRatios(
            forward=[ratio(candidate, champion) for start in self.starts for candidate, champion in start.forward],
            backward=[ratio(champion, candidate) for start in self.starts for candidate, champion in start.backward],
            starts=[number for number, start in enumerate(self.starts) for _ in start.forward],
        )


def measure(
    setting: Setting,
    bench: Bench,
    *,
    candidate: Callable[[], Runner],
    champion: Callable[[], Runner],
    reference: Runner,
    pairs: int,
    alone: bool,
) -> list[CasePairs]:
    """`pairs` counterbalanced pairs in each order for every case, shared among several starts of both sides.

    With `alone` the champion is timed by itself as well, before each start's candidate exists and when it is gone.
    `reference` only ever gives the overhead.
    """
    measured = {name: CasePairs(name) for name in setting.cases()}
    for share in shares(pairs):
        for case in measured.values():
            case.starts.append(StartPairs())
        with closing(champion()) as below:
            if alone:
                for name, case in measured.items():
                    case.starts[-1].before = _alone(setting, bench, below, name, trials=share)
            with closing(candidate()) as above:
                for case in measured.values():
                    _measure_case(setting, bench, case, candidate=above, champion=below, reference=reference, share=share, pairs=pairs)
            if alone:
                for name, case in measured.items():
                    case.starts[-1].after = _alone(setting, bench, below, name, trials=share)
    return list(measured.values())


def shares(pairs: int) -> list[int]:
    """How many pairs each start has: as equal as can be."""
    starts = max(1, min(STARTS, pairs // 2))
    return [pairs // starts + (number < pairs % starts) for number in range(starts)]


def _alone(setting: Setting, bench: Bench, champion: Runner, name: str, *, trials: int) -> list[Call]:
    prepare_both(bench, open_case(setting, bench, name, timed=True), champion)
    warm_up(bench, champion)
    bench.begin_turn(champion)
    return [bench.trial(champion) for _ in range(trials)]


def _measure_case(
    setting: Setting, bench: Bench, result: CasePairs, *, candidate: Runner, champion: Runner, reference: Runner, share: int, pairs: int
) -> None:
    case = open_case(setting, bench, result.case, timed=True)
    first = len(result.starts) == 1
    if first:
        choose_slots(setting, bench, reference, case)
    prepare_both(bench, case, candidate, champion, reference)
    for runner in (candidate, champion, reference) if first else (candidate, champion):
        warm_up(bench, runner)
    if first:
        result.overhead = measure_overhead(bench, reference)
    start, done = result.starts[-1], len(result.pairs)
    for index, forward in enumerate(blocks.counterbalanced(share)):
        (start.forward if forward else start.backward).append(_pair(bench, candidate, champion, forward=forward))
        if index % 4 == 3:
            result.overhead.interleaved.append(bench.empty(reference).wall_us)
            setting.progress("pairs", f"case {result.case}", done + index + 1, 2 * pairs)


def _pair(bench: Bench, candidate: Runner, champion: Runner, *, forward: bool) -> tuple[Call, Call]:
    calls = {}
    for runner in (candidate, champion) if forward else (champion, candidate):
        bench.begin_turn(runner)
        calls[runner.name] = bench.trial(runner)
    return calls[candidate.name], calls[champion.name]
