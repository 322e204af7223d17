"""Timing a candidate against the reference: calibration before it exists, then interleaved blocks.

Before any candidate exists the reference is timed alone and the overhead and the canary are
calibrated. Then blocks of both sides alternate in random size and order; a pair of blocks that was
not quiet is void before its times are read. Where the reference was slower beside the candidate than
alone before, it is timed alone again afterwards, and the faster of alone and interleaved counts.
Not for: statistics (`evaluator.statistics`) or for the verdict on a whole job.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.runner import Runner
from evaluator.judge.trial import Bench
from evaluator.protocol import blocks
from evaluator.protocol.blocks import BlockPair
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.protocol.quiet import Quiet, Unquiet, UnquietByCandidate
from evaluator.records import Status
from evaluator.runner import layout

EMPTY_CALLS = 15
CANARIES = 15
WARM_UP = 3
WAITS = 40
WAIT_S = 0.05


@dataclass(slots=True)
class CaseClock:
    """Everything that was timed for one case. Times are calls; nothing is subtracted yet."""

    case: str
    overhead: Overhead = field(default_factory=Overhead)
    quiet: Quiet = field(default_factory=Quiet)
    before: list[Call] = field(default_factory=list)
    """The reference alone, before any candidate exists."""
    after: list[Call] = field(default_factory=list)
    """The same when the candidate is gone; only where it was slower beside it than before."""
    reference: list[list[Call]] = field(default_factory=list)
    candidate: list[list[Call]] = field(default_factory=list)

    def fresh(self) -> CaseClock:
        """The calibration alone, for another candidate of the same lease."""
        return CaseClock(
            self.case, overhead=replace(self.overhead, interleaved=[]), quiet=Quiet(calibration=self.quiet.calibration), before=self.before
        )

    def trial_us(self, calls: list[Call]) -> list[float]:
        """max(event, wall - overhead) of each call, and what of it came after the answer."""
        overhead = self.overhead.overhead_us()
        return [max(call.event_us, call.wall_us - overhead) + call.late_us for call in calls]

    def alone_us(self) -> float | None:
        """Median trial of the reference while no candidate exists: the slower of before and after.

        A machine that has become slower since is slower afterwards as well; a candidate that slows the reference is gone by then.
        """
        medians = [float(np.median(self.trial_us(calls))) for calls in (self.before, self.after) if calls]
        return max(medians) if medians else None

    def slowed(self) -> float:
        """How many times as long the reference took beside the candidate as alone."""
        beside = [t for block in self.reference for t in self.trial_us(block)]
        alone = self.alone_us()
        return float(np.median(beside)) / alone if alone else 1.0

    def wall_us(self, calls: list[Call]) -> list[float]:
        """wall - overhead of each call: the judge's clock alone."""
        overhead = self.overhead.overhead_us()
        return [max(0.0, call.wall_us - overhead) + call.late_us for call in calls]


def calibrate(bench: Bench, reference: Runner, case: str, *, trials: int) -> CaseClock:
    """Time the constructed reference alone, the empty call and the canary. No candidate may exist yet."""
    clock = CaseClock(case)
    warm_up(bench, reference)
    clock.overhead = measure_overhead(bench, reference)
    clock.quiet.calibration = [_canary(bench, reference) for _ in range(CANARIES)]
    bench.reading.reach_us.clear()
    bench.begin_turn(reference)
    clock.before = [bench.trial(reference) for _ in range(trials)]
    clock.overhead.reach = list(bench.reading.reach_us)
    return clock


def measure_overhead(bench: Bench, reference: Runner) -> Overhead:
    """What a call of the constructed reference costs beside its work."""
    overhead = Overhead()
    for _ in range(EMPTY_CALLS):
        overhead.before.append(bench.empty(reference).wall_us)
        overhead.bare.append(bench.bare_us(reference))
        overhead.dispatch.append(bench.empty(reference, layout.DISPATCH).wall_us)
    return overhead


def calibrate_again(bench: Bench, clock: CaseClock, reference: Runner) -> None:
    """Time the constructed reference alone once more. The candidate must be gone."""
    warm_up(bench, reference)
    bench.begin_turn(reference)
    clock.after = [bench.trial(reference) for _ in clock.before]


def interleave(
    bench: Bench, clock: CaseClock, *, reference: Runner, candidate: Runner, trials: int, progress: Callable[[int, int], None]
) -> None:
    """Add at least `trials` calls a side to `clock`, in blocks of random size and order."""
    warm_up(bench, reference)
    warm_up(bench, candidate)
    waiting = blocks.plan(trials)
    total = len(waiting)
    while waiting:
        pair = waiting.pop()
        ref, cand, counts = _run_pair(bench, clock, pair, reference, candidate)
        _judge_quiet(clock.quiet)
        if counts:
            clock.reference.append(ref)
            clock.candidate.append(cand)
        else:
            waiting.append(pair)
        progress(total - len(waiting), total)


def warm_up(bench: Bench, runner: Runner) -> None:
    """Calls whose times are not kept; their outputs are verified all the same."""
    for _ in range(WARM_UP):
        bench.trial(runner, flush=False, always_verify=True)


def _run_pair(bench: Bench, clock: CaseClock, pair: BlockPair, reference: Runner, candidate: Runner) -> tuple[list[Call], list[Call], bool]:
    sides = [(reference, pair.reference), (candidate, pair.candidate)]
    if pair.candidate_first:
        sides.reverse()
    canaries = [_await_quiet(bench, clock.quiet, reference)]
    calls: dict[str, list[Call]] = {}
    for runner, count in sides:
        bench.begin_turn(runner)
        calls[runner.name] = [bench.trial(runner, last=index == count - 1) for index in range(count)]
        canaries.append(clock.quiet.is_quiet(_canary(bench, reference)))
    clock.overhead.interleaved.append(bench.empty(reference).wall_us)
    counts = clock.quiet.count(first=canaries[0], between=canaries[1], last=canaries[2], candidate_first=pair.candidate_first)
    return calls[reference.name], calls[candidate.name], counts


def _await_quiet(bench: Bench, quiet: Quiet, reference: Runner) -> bool:
    """Wait a little for a quiet device before a pair begins: nothing has been timed yet."""
    for _ in range(WAITS):
        if quiet.is_quiet(_canary(bench, reference)):
            return True
        time.sleep(WAIT_S)
    return quiet.is_quiet(_canary(bench, reference))


def _canary(bench: Bench, reference: Runner) -> float:
    """The best of four runs of the canary: one hiccup of the machine is not an unquiet device."""
    return min(bench.canary(reference) for _ in range(4))


def _judge_quiet(quiet: Quiet) -> None:
    try:
        quiet.judge()
    except UnquietByCandidate as error:
        raise Refusal(Status.TAMPERED, str(error)) from error
    except Unquiet as error:
        raise Infrastructure(f"the device is not quiet: {error}") from error
