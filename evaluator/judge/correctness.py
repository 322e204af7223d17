"""Correctness and honesty of a candidate on fresh weights and inputs.

Every seed draws new weights; the candidate is constructed anew under them. Outputs and inputs are
read from the stopped runner and compared in the trusted process.
Not for: speed, or for refusing on what the candidate's own process says alone, except that it may
refuse (never pass) on it.
"""

from __future__ import annotations

from collections.abc import Callable

from evaluator.judge.outcome import Refusal
from evaluator.judge.runner import Runner
from evaluator.judge.trial import Bench
from evaluator.judge.trusted import CaseInfo
from evaluator.protocol import blocks
from evaluator.records import CaseCheck, Status


def check_case(bench: Bench, runner: Runner, case: CaseInfo, *, seeds: int, calls: int = 2) -> CaseCheck:
    """Compare `seeds` fresh draws of weights, each with `calls` fresh draws of inputs."""
    worst = 0.0
    for index in range(seeds):
        prepare(bench, runner, case)
        for _ in range(calls):
            slot = bench.write_inputs(runner, flush=False)
            bench.call(runner, slot)
            try:
                worst = max(worst, bench.verify(runner, slot) or 0.0)
            except Refusal as refusal:
                refusal.message = f"case {case.name}, seed {index + 1} of {seeds}: {refusal.message}"
                raise
    return CaseCheck(case=case.name, correct=True, seeds=seeds, max_abs_error=worst)


def check_parameters(bench: Bench, runner: Runner, case: CaseInfo) -> None:
    """New weights in the same model between two calls must change its answer: nothing derived from the old ones may be kept.

    Where the model's state is not the reference's by name and shape there is nothing to change from outside.
    """
    if not prepare(bench, runner, case):
        return
    bench.call(runner, bench.write_inputs(runner, flush=False))
    weights = bench.trusted.weights(blocks.seed())
    try:
        runner.update_state(weights)
    finally:
        weights.close()
    slot = bench.write_inputs(runner, flush=False)
    bench.call(runner, slot)
    try:
        bench.verify(runner, slot)
    except Refusal as refusal:
        refusal.message = f"case {case.name}, after the parameters changed in place between two calls: {refusal.message}"
        refusal.hint = "keep nothing derived from parameters between calls, or have the problem declare them constant (parameters_constant)"
        raise


def prepare(bench: Bench, runner: Runner, case: CaseInfo) -> bool:
    """Construct `runner` under fresh weights and map fresh slots; whether it holds the whole of the reference's state."""
    bench.reading.forget(runner)
    weights = bench.trusted.weights(blocks.seed())
    try:
        differing = runner.construct(case, weights)
    finally:
        weights.close()
    runner.map(bench.trusted.pool(runner.name, slots=bench.slots, seed=blocks.seed()))
    return bool(weights.state) and not differing


def require_unchanged(runner: Runner) -> None:
    """Refuse a candidate whose process no longer has its timing primitives, comparisons or flags."""
    changes = runner.changes()
    if changes:
        raise Refusal(Status.TAMPERED, "; ".join(changes[:4]))


def require_own_kernel(bench: Bench, case: CaseInfo, start_blanked: Callable[[], Runner]) -> None:
    """Refuse a candidate none of whose own kernels ran, or whose output is right without them.

    A second process runs the candidate with every result of its own kernels overwritten: if the
    output is still right, they do not matter.
    """
    runner = start_blanked()
    try:
        if not _right_when_blanked(bench, runner, case):
            return
        ran = sum(runner.kernels().values())
    finally:
        runner.close()
    detail = "its output is right with its own kernels blanked" if ran else "none of its own kernels ran"
    raise Refusal(Status.NO_CUSTOM_KERNEL, detail, hint="the output must depend on a kernel of the candidate's own (load_inline or Triton)")


def _right_when_blanked(bench: Bench, runner: Runner, case: CaseInfo) -> bool:
    prepare(bench, runner, case)
    slot = bench.write_inputs(runner, flush=False)
    try:
        bench.call(runner, slot)
        bench.verify(runner, slot)
    except Refusal:
        return False
    return True
