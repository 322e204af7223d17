"""One trial: fresh inputs, cold cache, one timed call, and the verification of its output.

Invariant: which slot counts is drawn after the inputs are written and reaches the runner with the
post alone; whether an output is verified is drawn after the call is answered.
Not for: how many trials there are or in which order (`judge.timing`, `judge.comparison`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from evaluator.judge.reading import USUAL, Reading, Unseen
from evaluator.judge.runner import Runner
from evaluator.judge.trusted import TrustedProcess
from evaluator.protocol import blocks
from evaluator.protocol.clock import Call
from evaluator.runner import layout

AGAIN = 8
"""Calls made again because an output lay where none did before; each shows one more place."""


@dataclass(slots=True)
class Bench:
    """The processes that one measurement uses, and whose turn it is."""

    trusted: TrustedProcess
    reading: Reading
    slots: int
    spins: bool
    """Whether runners spin between their calls: then the first call after a rest is slower and does not count."""
    verified: int = 0
    """Outputs compared so far, all of them right."""
    reused_buffers: int = 0
    """Candidate calls whose output lay where the call before put it."""
    touches_us: list[float] = field(default_factory=list)
    """What touching the reference's runner took."""
    _turn: Runner | None = None

    def trial(self, runner: Runner, *, last: bool = False, flush: bool = True, always_verify: bool = False) -> Call:
        """Time one call of `runner` on fresh inputs; verify it if its turn comes."""
        for _ in range(AGAIN):
            try:
                return self._trial(runner, last=last, flush=flush, always_verify=always_verify)
            except Unseen:
                continue
        raise runner.wrong(f"its outputs lay in a new place at each of {AGAIN} calls")

    def call(self, runner: Runner, slot: int, *, timeout_s: float | None = None) -> Call:
        """One untimed call on a slot that is written already, its output ready to be verified."""
        self._give_turn(runner)
        for _ in range(AGAIN):
            try:
                return self._answered_call(runner, slot, timeout_s=timeout_s)
            except Unseen:
                continue
        raise runner.wrong(f"its outputs lay in a new place at each of {AGAIN} calls")

    def empty(self, runner: Runner, operation: int = layout.EMPTY) -> Call:
        """Time one call that does nothing under the same conditions (trusted runner only)."""
        self.write_inputs(runner, flush=True)
        self._give_turn(runner)
        if self.spins:
            runner.call(operation)
        self._touch(runner)
        return runner.call(operation)

    def begin_turn(self, runner: Runner) -> None:
        """The turn of `runner` begins, in as many calls as follow: an uncounted one where it has to find its feet."""
        if self.spins and self._turn is not runner:
            self.trial(runner)

    def canary(self, runner: Runner) -> float:
        """One run of the trusted canary, in microseconds (trusted runner only)."""
        self._give_turn(runner)
        return runner.call(layout.CANARY).wall_us

    def bare_us(self, runner: Runner) -> float:
        """The shortest request there is (trusted runner only)."""
        self._give_turn(runner)
        return runner.bare_us()

    def write_inputs(self, runner: Runner, *, flush: bool) -> int:
        """Fresh values in every slot of `runner`'s pool; return the slot that counts."""
        self.trusted.fill(runner.name, blocks.seed(), flush=flush)
        return blocks.slot(self.slots)

    def verify(self, runner: Runner, slot: int) -> float | None:
        """Compare the last output and the inputs with the trusted process's copy; return the largest absolute error."""
        correct, error, detail = self.reading.verify(runner, slot)
        if not correct:
            raise runner.wrong(detail)
        self.require_inputs_unchanged(runner, slot)
        self.verified += 1
        return error

    def require_inputs_unchanged(self, runner: Runner, slot: int) -> None:
        """Refuse a runner whose own view of a slot is not what was written there."""
        change = self.reading.input_change(runner, slot)
        if change:
            raise runner.wrong(change)

    def _trial(self, runner: Runner, *, last: bool, flush: bool, always_verify: bool) -> Call:
        slot = self.write_inputs(runner, flush=flush)
        self._give_turn(runner)
        early_us = self._touch(runner)
        before = runner.output_address()
        call = self._answered_call(runner, slot)
        call = replace(call, late_us=call.late_us + early_us) if early_us else call
        self.reused_buffers += before == runner.output_address()
        if always_verify or blocks.verify_now(last=last):
            self.verify(runner, slot)
        return call

    def _answered_call(self, runner: Runner, slot: int, *, timeout_s: float | None = None) -> Call:
        self.reading.prepare(runner)
        try:
            call = runner.call(slot=slot, timeout_s=timeout_s)
        except BaseException:
            self.reading.call_off()
            raise
        return self.reading.answered(runner, call)

    def _touch(self, runner: Runner) -> float:
        """Switch a spinning runner's device to it; what it took beyond the same after a reference's turn, in microseconds.

        The inputs are written by then, so that time is charged to the call. A runner that stands still is never woken
        between its inputs and its clock: there is nothing to switch, and it would be free to start.
        """
        if not self.spins:
            return 0.0
        took = runner.touch()
        if runner.reference:
            self.touches_us.append(took)
            return 0.0
        return max(0.0, took - float(np.quantile(self.touches_us, USUAL))) if self.touches_us else 0.0

    def _give_turn(self, runner: Runner) -> None:
        """Everybody else rests."""
        if self._turn is not None and self._turn is not runner and not self._turn.closed:
            self._turn.rest()
        self._turn = runner
