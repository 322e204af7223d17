"""One protected evaluation: integrity, gate, build, references, correctness, timing, verdict.

The reference is calibrated on every case before the candidate's process exists.
Not for: turning a refusal into a result (`judge.jobs`).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from evaluator.judge.candidate import Prepared, prepare_candidate, scan_source
from evaluator.judge.correctness import check_case, check_parameters, prepare, require_own_kernel, require_unchanged
from evaluator.judge.outcome import Refusal
from evaluator.judge.report import evaluation
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.timing import CaseClock, calibrate, calibrate_again, interleave, warm_up
from evaluator.judge.trial import Bench
from evaluator.judge.trusted import CaseInfo
from evaluator.protocol import blocks
from evaluator.records import CaseCheck, Evaluation, Status

SEEDS = 3
FIRST_CALLS = 3
"""Enough to tell how long a call is."""
TRIALS = 60
ALONE_TRIALS = 15


def evaluate(setting: Setting) -> Evaluation:
    """Measure the job's candidate."""
    assert setting.job.candidate is not None
    scan_source(setting, setting.job.candidate)
    setting.spares().expect(2 if setting.calibration else 3)  # candidate and blanked, and the reference where it is not there
    setting.start_trusted()
    setting.reference()
    prepared = prepare_candidate(setting)
    bench = setting.bench()
    if prepared.interpreted:
        return check_interpreted(setting, bench, prepared)
    reference, clocks = calibrated(setting, bench)
    seen = bench.reused_buffers
    with closing(setting.candidate_runner(prepared.build, prepared.source, name="candidate")) as candidate:
        checks = check_candidate(setting, bench, prepared, candidate)
        for name, clock in clocks.items():
            setting.progress("timing", f"case {name}")
            prepare_both(bench, open_case(setting, bench, name, timed=True), reference, candidate)
            interleave(
                bench,
                clock,
                reference=reference,
                candidate=candidate,
                trials=int(setting.job.options.get("trials", TRIALS)),
                progress=partial(setting.progress, "timing", f"case {name}"),
            )
        require_unchanged(candidate)
    for name, clock in clocks.items():
        if clock.slowed() > 1.0:
            setting.progress("timing", f"reference alone again, case {name}")
            prepare(bench, reference, open_case(setting, bench, name, timed=True))
            calibrate_again(bench, clock, reference)
    setting.progress("verdict")
    report = evaluation(list(clocks.values()), checks, seed=blocks.seed(), reused_buffers=bench.reused_buffers - seen)
    return replace(report, flags=(*prepared.flags, *report.flags))


def calibrated(setting: Setting, bench: Bench) -> tuple[Runner, dict[str, CaseClock]]:
    """The reference's runner and its figures from before any candidate existed; once for a series of jobs on one lease."""
    if setting.calibration is None:
        reference = setting.reference()
        clocks = {}
        for name in setting.cases():
            setting.progress("references", f"reference alone, case {name}")
            case = open_case(setting, bench, name, timed=True)
            require_fit(bench, name)
            choose_slots(setting, bench, reference, case)
            clocks[name] = calibrate(bench, reference, name, trials=ALONE_TRIALS)
        setting.calibration = (reference, clocks)
    reference, clocks = setting.calibration
    return reference, {name: clock.fresh() for name, clock in clocks.items()}


def check_candidate(setting: Setting, bench: Bench, prepared: Prepared, candidate: Runner) -> list[CaseCheck]:
    """Correctness and honesty on every case; raises the refusal."""
    seeds = int(setting.job.options.get("seeds", SEEDS))
    checks = []
    for name in setting.cases():
        setting.progress("correctness", f"case {name}")
        case = open_case(setting, bench, name)
        checks.append(check_case(bench, candidate, case, seeds=seeds))
        if not setting.problem.parameters_constant:
            check_parameters(bench, candidate, case)
    require_unchanged(candidate)
    setting.progress("correctness", "own kernels blanked")
    require_own_kernel(bench, case, lambda: setting.candidate_runner(prepared.build, prepared.source, name="blanked", blank=True))
    return checks


def check_interpreted(setting: Setting, bench: Bench, prepared: Prepared) -> Evaluation:
    """A Triton candidate on a CPU: correctness through Triton's interpreter, never timed."""
    with closing(setting.candidate_runner(prepared.build, prepared.source, name="candidate")) as candidate:
        checks = check_candidate(setting, bench, prepared, candidate)
    flags = (*prepared.flags, "Triton on a CPU device: checked through its interpreter, never timed")
    return Evaluation(
        correct=True,
        fast1=False,
        fast1_raw=False,
        speedup=None,
        speedup_ci=None,
        speedup_bound=None,
        score=0.0,
        checks=tuple(checks),
        flags=flags,
    )


def open_case(setting: Setting, bench: Bench, name: str, *, timed: bool = False) -> CaseInfo:
    """Take a case in hand on the trusted side."""
    case = bench.trusted.case(name, blocks.seed())
    bench.reading.open(case)
    bench.slots = setting.slots.get(name, setting.device.slots) if timed else setting.device.slots
    return case


def prepare_both(bench: Bench, case: CaseInfo, *runners: Runner) -> None:
    """Construct several runners under the same fresh weights, each with slots of its own."""
    weights = bench.trusted.weights(blocks.seed())
    try:
        for runner in runners:
            bench.reading.forget(runner)
            runner.construct(case, weights)
            runner.map(bench.trusted.pool(runner.name, slots=bench.slots, seed=blocks.seed()))
    finally:
        weights.close()


def choose_slots(setting: Setting, bench: Bench, reference: Runner, case: CaseInfo) -> None:
    """Find out how many input slots a timed call of this case needs, and use as many; the reference is prepared with them."""
    prepare(bench, reference, case)
    if case.name not in setting.slots:
        warm_up(bench, reference)
        reference_us = float(np.median([bench.trial(reference).event_us for _ in range(FIRST_CALLS)]))
        setting.slots[case.name] = setting.device.slots_for(reference_us, case.input_bytes)
    if setting.slots[case.name] != bench.slots:
        bench.slots = setting.slots[case.name]
        prepare(bench, reference, case)


def require_fit(bench: Bench, name: str) -> None:
    """Refuse to measure a problem whose tolerance accepts a trivial answer."""
    fitness = bench.trusted.fitness(blocks.seed())
    if fitness["trivial"]:
        raise Refusal(
            Status.EVALUATOR_ERROR,
            f"case {name} is unfit: its tolerance accepts {fitness['trivial'][0]}",
            hint="tighten the tolerance or change the inputs",
        )
    if not fitness["oracle"]:
        raise Refusal(
            Status.EVALUATOR_ERROR,
            f"case {name} is unfit: the reference itself is off against float64: {fitness['detail']}",
            hint="loosen the tolerance",
        )
