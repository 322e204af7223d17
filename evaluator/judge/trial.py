"""One trial: fresh inputs, cold cache, one timed call, and the verification of its output.

Invariant: which slot counts is drawn after the inputs are written and reaches the runner with the
post alone; whether an output is verified is drawn after the call is answered.
Not for: how many trials there are or in which order (`judge.timing`, `judge.comparison`).
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.runner import Runner
from evaluator.judge.trusted import TrustedProcess
from evaluator.protocol import blocks
from evaluator.protocol.clock import Call
from evaluator.protocol.memory import Snapshot
from evaluator.records import Status
from evaluator.runner import layout


@dataclass(slots=True)
class Bench:
    """The processes and pages that one measurement uses."""

    trusted: TrustedProcess
    slots: int
    candidate_files: dict[str, str]
    """What a candidate may import from beside it."""
    snapshot: Snapshot | None = None
    verified: int = 0
    """Outputs compared so far, all of them right."""
    reused_buffers: int = 0
    """Candidate calls whose output lay where the call before put it."""

    def trial(self, runner: Runner, *, last: bool = False, flush: bool = True, always_verify: bool = False) -> Call:
        """Time one call of `runner` on fresh inputs; verify it if its turn comes."""
        slot = self.write_inputs(runner, flush=flush)
        before = runner.output_address()
        call = runner.call(slot=slot)
        self.reused_buffers += before == runner.output_address()
        if always_verify or blocks.verify_now(last=last):
            self.verify(runner, slot)
        return call

    def empty(self, runner: Runner) -> Call:
        """Time one empty call under the same conditions (trusted runner only)."""
        self.write_inputs(runner, flush=True)
        return runner.call(layout.EMPTY)

    def write_inputs(self, runner: Runner, *, flush: bool) -> int:
        """Fresh values in every slot of `runner`'s pool; return the slot that counts."""
        self.trusted.fill(runner.name, blocks.seed(), flush=flush)
        return blocks.slot(self.slots)

    def verify(self, runner: Runner, slot: int) -> float | None:
        """Compare the last output and the inputs with the trusted process's copy; return the largest absolute error."""
        assert self.snapshot is not None
        outputs = runner.snapshot_outputs(self.snapshot)
        correct, error, detail = self.trusted.verify(runner.name, slot, outputs, runner.declared)
        if not correct:
            raise wrong(runner, detail)
        self.require_inputs_unchanged(runner, slot)
        self.verified += 1
        return error

    def require_inputs_unchanged(self, runner: Runner, slot: int) -> None:
        """Refuse a runner whose own view of a slot is not what was written there."""
        assert self.snapshot is not None
        change = self.trusted.input_change(runner.name, slot, runner.snapshot_inputs(self.snapshot, slot))
        if change:
            raise wrong(runner, change)


def wrong(runner: Runner, detail: str) -> Exception:
    """What a wrong output of this runner means."""
    if not runner.charged:
        return Infrastructure(f"the runner `{runner.name}` disagrees with the reference: {detail}")
    return Refusal(Status.INCORRECT, detail)
