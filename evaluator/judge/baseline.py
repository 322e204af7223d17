"""Eager and torch.compile times of the reference, by the same clock protocol.

The compiled reference runs in a sandbox that allows its compiler to run; its outputs are verified
like any other. Where torch.compile does not work, the reason is said and the eager time stands.
Not for: candidates.
"""

from __future__ import annotations

import numpy as np

from evaluator.judge.evaluation import open_case, prepare_both
from evaluator.judge.outcome import Infrastructure
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.timing import EMPTY_CALLS, warm_up
from evaluator.judge.trial import Bench
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.records import Baseline, BaselineCase
from evaluator.statistics import geomean

TRIALS = 30
COMPILE_TIMEOUT_S = 300.0


def baseline(setting: Setting) -> tuple[Baseline, str]:
    """The baseline of every case, and why there is no compiled time (empty where there is)."""
    setting.start_trusted()
    eager = setting.reference_runner(name="eager")
    compiled: Runner | None = setting.reference_runner(name="compiled", profile="build", compiled=True)
    bench = setting.bench()
    cases: list[BaselineCase] = []
    why = ""
    for name in setting.cases():
        setting.progress("baseline", f"case {name}", len(cases), len(setting.cases()))
        runners = [eager]
        if compiled is not None:
            why = _warm_compiled(setting, bench, name, eager, compiled)
            compiled = None if why else compiled
        if compiled is None:
            prepare_both(bench, open_case(setting, bench, name), eager)
        else:
            runners.append(compiled)
        cases.append(_measure(setting, bench, name, runners))
    compiled_us = [c.compiled_us for c in cases if c.compiled_us is not None]
    whole = len(compiled_us) == len(cases)
    return Baseline(
        eager_us=geomean([c.eager_us for c in cases]), compiled_us=geomean(compiled_us) if whole else None, cases=tuple(cases)
    ), why


def _warm_compiled(setting: Setting, bench: Bench, name: str, eager: Runner, compiled: Runner) -> str:
    """Prepare both and let the compiler work, untimed; why it could not, or nothing."""
    try:
        prepare_both(bench, open_case(setting, bench, name), eager, compiled)
        slot = bench.write_inputs(compiled, flush=False)
        bench.call(compiled, slot, timeout_s=COMPILE_TIMEOUT_S)
        bench.verify(compiled, slot)
    except Infrastructure as error:
        return f"torch.compile is not available: {error.message}"
    return ""


def _measure(setting: Setting, bench: Bench, name: str, runners: list[Runner]) -> BaselineCase:
    trials = int(setting.job.options.get("trials", TRIALS))
    overhead = Overhead()
    eager = runners[0]
    for runner in runners:
        warm_up(bench, runner)
    overhead.before = [bench.empty(eager).wall_us for _ in range(EMPTY_CALLS)]
    calls: list[list[Call]] = [[] for _ in runners]
    for _ in range(trials):
        for side, runner in zip(calls, runners, strict=True):
            side.append(bench.trial(runner))
    medians = [float(np.median([max(c.event_us, c.wall_us - overhead.overhead_us()) + c.late_us for c in side])) for side in calls]
    return BaselineCase(case=name, eager_us=medians[0], compiled_us=medians[1] if len(medians) > 1 else None, trials=trials)
