"""Correctness beyond the benchmark: never times anything, on sizes and inputs the benchmark does not have.

Parts of this version: many seeds, repeated and interleaved calls, input mutation, sizes above and
below the benchmark's. What is left out is named in the report.
Not for: speed.
"""

from __future__ import annotations

from collections.abc import Callable

from evaluator.judge.candidate import Prepared, prepare_candidate
from evaluator.judge.correctness import check_case, prepare
from evaluator.judge.evaluation import open_case
from evaluator.judge.outcome import Refusal
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.trial import Bench
from evaluator.records import Robustness, RobustnessPart

MANY_SEEDS = 8
REPEATS = 10
NOT_CHECKED = ("value regimes", "permuted batches", "poisoned allocator", "memory checker")


def robustness(setting: Setting) -> Robustness:
    """Run every part; each in a fresh process, so that one failure does not hide another."""
    setting.start_trusted()
    prepared = prepare_candidate(setting)
    setting.spares().expect(len(PARTS))
    bench = setting.bench()
    parts = [_part(setting, bench, prepared, name, tests) for name, tests in PARTS.items()]
    return Robustness(passed=all(p.passed for p in parts), parts=tuple(parts), not_checked=NOT_CHECKED)


def _part(setting: Setting, bench: Bench, prepared: Prepared, name: str, tests: Callable[[Setting, Bench, Runner], int]) -> RobustnessPart:
    setting.progress("robustness", name)
    runner = setting.candidate_runner(prepared.build, prepared.source, name=name.replace(" ", "-"))
    try:
        return RobustnessPart(name=name, passed=True, tests=tests(setting, bench, runner))
    except Refusal as refusal:
        return RobustnessPart(name=name, passed=False, tests=0, detail=f"{refusal.status.value}: {refusal.message}"[:500])
    finally:
        runner.close()


def _many_seeds(setting: Setting, bench: Bench, runner: Runner) -> int:
    cases = setting.cases()
    for name in cases:
        check_case(bench, runner, open_case(setting, bench, name), seeds=MANY_SEEDS, calls=1)
    return MANY_SEEDS * len(cases)


def _repeated_calls(setting: Setting, bench: Bench, runner: Runner) -> int:
    """The same model called again and again: on new values, and on the same slot without new values."""
    cases = setting.cases()
    for name in cases:
        prepare(bench, runner, open_case(setting, bench, name))
        for _ in range(REPEATS):
            slot = bench.write_inputs(runner, flush=False)
            for _ in range(2):
                bench.call(runner, slot)
                bench.verify(runner, slot)
            other = (slot + 1) % bench.slots
            bench.call(runner, other)
            bench.verify(runner, other)
    return 3 * REPEATS * len(cases)


def _input_mutation(setting: Setting, bench: Bench, runner: Runner) -> int:
    """Every slot's inputs, also those of the calls before, still hold what was written."""
    cases = setting.cases()
    for name in cases:
        prepare(bench, runner, open_case(setting, bench, name))
        bench.write_inputs(runner, flush=False)
        for slot in range(bench.slots):
            bench.call(runner, slot)
        for slot in range(bench.slots):
            bench.require_inputs_unchanged(runner, slot)
    return bench.slots * len(cases)


def _sizes(setting: Setting, bench: Bench, runner: Runner) -> int:
    """Sizes other than the benchmark's; a problem that declares none has none to offer."""
    names = [case.name for case in setting.problem.cases(setting.job.device, kind="test")]
    for name in names:
        check_case(bench, runner, open_case(setting, bench, name), seeds=2, calls=2)
    return 4 * len(names)


PARTS = {"many seeds": _many_seeds, "repeated calls": _repeated_calls, "input mutation": _input_mutation, "sizes": _sizes}
