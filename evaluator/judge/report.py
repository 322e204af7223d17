"""From timed calls to the evaluation's figures: pure functions over what was timed.

Invariant: nothing here measures; the same calls and seeds give the same report.
Not for: refusing on correctness (`judge.correctness`), except for clocks that disagree grossly.
"""

from __future__ import annotations

from typing import Any

from evaluator.judge.outcome import Refusal
from evaluator.judge.timing import CaseClock
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.records import CaseCheck, CaseTiming, Evaluation, Interval, Status
from evaluator.runner import layout
from evaluator.statistics import Agreement, CaseBlocks, Ruling, audit_blocks, geomean, geomean_speedup, mean_speedup, speedup

SCORE_CAP = 10.0
INTERRUPTED = 3
"""A candidate's clocks disagree grossly on so many times the reference's blocks before it is its doing."""
SLOWED = 1.05
"""From here on a reference that was slower beside the candidate than alone is worth a word."""
SMALLEST_US = 1e-3
"""A trial below a nanosecond cannot be: it is kept at that, so that no aggregate is pulled to zero."""


def evaluation(clocks: list[CaseClock], checks: list[CaseCheck], *, seed: int, reused_buffers: int) -> Evaluation:
    """The report of one timed evaluation; raises `tampered` where the candidate's clocks disagree grossly."""
    timings = [case_timing(clock, seed=seed) for clock in clocks]
    overall = geomean_speedup([case_blocks(clock) for clock in clocks], seed=seed)
    bound = geomean([t.speedup_bound for t in timings])
    flags = [*_flags(timings, overall.value, overall.interval, bound, reused_buffers), *_slowed(clocks)]
    return Evaluation(
        correct=True,
        fast1=overall.interval.low >= 1.0 and bound >= 1.0,
        fast1_raw=overall.value >= 1.0,
        speedup=overall.value,
        speedup_ci=overall.interval,
        speedup_bound=bound,
        score=min(SCORE_CAP, bound if overall.value >= 1.0 > bound else overall.value),
        checks=tuple(checks),
        timings=tuple(timings),
        flags=tuple(flags),
        trials={clock.case: raw_trials(clock, seed) for clock in clocks},
    )


def case_blocks(clock: CaseClock) -> CaseBlocks:
    """Partner blocks of one case in trial times."""
    return CaseBlocks(ref=_blocks(clock, clock.reference), cand=_blocks(clock, clock.candidate), alone_us=clock.alone_us())


def case_timing(clock: CaseClock, *, seed: int) -> CaseTiming:
    """Figures of one case."""
    blocks = case_blocks(clock)
    estimate = speedup(blocks, seed=seed)
    cand_us = _median(blocks.cand)
    ref_us = min(_median(blocks.ref), blocks.alone_us or float("inf"))
    ruling, usual = audit(clock, clock.candidate), audit(clock, clock.reference)
    if _is_forged(ruling, usual):
        raise Refusal(Status.TAMPERED, f"case {clock.case}: {ruling.reason}")
    return CaseTiming(
        case=clock.case,
        ref_us=ref_us,
        cand_us=cand_us,
        speedup=estimate.value,
        speedup_ci=estimate.interval,
        speedup_mean=mean_speedup(blocks),
        speedup_bound=ref_us / (cand_us + clock.overhead.slack_us()),
        trials=sum(len(b) for b in blocks.cand),
        blocks=len(blocks.cand),
        voided=clock.quiet.voided,
        audit=ruling.audit,
        ref_audit=usual.audit,
    )


def _is_forged(candidate: Ruling, reference: Ruling) -> bool:
    """Events far below the wall, and clearly more often than the reference's: on a busy machine both sides' calls are interrupted.

    Either way the wall decides the figure; this is about the word for it.
    """
    below = candidate.audit.event_us < candidate.audit.wall_us
    return candidate.agreement is Agreement.GROSS and below and candidate.gross >= INTERRUPTED * reference.gross


def audit(clock: CaseClock, blocks: list[list[Call]]) -> Ruling:
    """The two clocks of one side, judged by how far the trusted runner's lie apart."""
    overhead = clock.overhead.overhead_us()
    usual = [abs(call.wall_us - overhead - call.event_us) for block in clock.reference for call in block]
    return audit_blocks(
        event_us=[[call.event_us for call in block] for block in blocks],
        wall_us=[[call.wall_us for call in block] for block in blocks],
        overhead_us=overhead,
        slack_us=clock.overhead.slack_us(),
        usual_us=_median([usual]),
    )


def raw_trials(clock: CaseClock, seed: int) -> dict[str, Any]:
    """Every kept call by block and the seed: each figure can be computed again from them.

    A call is [event, wall] in microseconds; where it went on after its answer, also how long.
    """
    return {
        "ref": [[_pair(c) for c in block] for block in clock.reference],
        "cand": [[_pair(c) for c in block] for block in clock.candidate],
        "before": [_pair(c) for c in clock.before],
        "after": [_pair(c) for c in clock.after],
        "overhead_before": _rounded(clock.overhead.before),
        "overhead_interleaved": _rounded(clock.overhead.interleaved),
        "bare": _rounded(clock.overhead.bare),
        "dispatch": _rounded(clock.overhead.dispatch),
        "reach": _rounded(clock.overhead.reach),
        "seed": seed,
    }


def read_trials(case: str, trials: dict[str, Any]) -> CaseClock:
    """The clock of a case from what `raw_trials` kept of it, for everything that its figures rest on."""
    return CaseClock(
        case,
        overhead=Overhead(
            before=trials["overhead_before"],
            interleaved=trials["overhead_interleaved"],
            bare=trials["bare"],
            dispatch=trials["dispatch"],
            reach=trials["reach"],
        ),
        before=_calls(trials["before"]),
        after=_calls(trials["after"]),
        reference=[_calls(block) for block in trials["ref"]],
        candidate=[_calls(block) for block in trials["cand"]],
    )


def _flags(timings: list[CaseTiming], value: float, interval: Interval, bound: float, reused_buffers: int) -> list[str]:
    flags = []
    if value > SCORE_CAP:
        flags.append("over 10x")
    disagreeing = [t.case for t in timings if not t.audit.agrees]
    if disagreeing:
        flags.append(f"clocks disagree on {', '.join(disagreeing)}: the wall decides")
    if value >= 1.0 > bound:
        flags.append("within slack")
    if reused_buffers:
        flags.append("reused output buffer")
    return flags


def _slowed(clocks: list[CaseClock]) -> list[str]:
    return [
        f"case {clock.case}: the reference took {clock.slowed():.2f} times as long beside the candidate as alone: alone counts"
        for clock in clocks
        if clock.slowed() > SLOWED
    ]


def _blocks(clock: CaseClock, blocks: list[list[Call]]) -> list[list[float]]:
    return [[max(SMALLEST_US, t) for t in clock.trial_us(block)] for block in blocks]


def _median(blocks: Any) -> float:
    values = sorted(t for block in blocks for t in block)
    middle = len(values) // 2
    return float(values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2)


def _calls(pairs: list[list[float]]) -> list[Call]:
    return [Call(event_us=event, wall_us=wall, code=layout.OK, late_us=late[0] if late else 0.0) for event, wall, *late in pairs]


def _pair(call: Call) -> list[float]:
    return _rounded([call.event_us, call.wall_us, *([call.late_us] if call.late_us else [])])


def _rounded(values: list[float]) -> list[float]:
    """To the nanosecond, which is what the clocks count: nothing is lost."""
    return [round(v, 3) for v in values]
