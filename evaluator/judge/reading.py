"""What a runner answered, as it lay at the answer: two ways to get at it.

`StoppedMemory`: the runner stands still since its answer, and its memory is read when an output is to be
verified. `ShownMemory`: the runner's device memory was handed over before, and the trusted process copies
each output right after the answer; what that takes beyond the same copy after a reference's call is
charged to the call, so that work which went on after the answer costs what it took.
Not for: choosing what is verified (`judge.trial`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from evaluator.judge.runner import Runner
from evaluator.judge.trusted import CaseInfo, TrustedProcess
from evaluator.protocol.clock import Call
from evaluator.protocol.mailbox import OutputPlace, Signal
from evaluator.protocol.memory import Snapshot
from evaluator.runner import layout

PLACES = 64
"""Places that one runner's outputs may lie in; torch's allocator needs two or three."""


USUAL = 0.9
"""Quantile of the reference's copies: what takes no longer than that is not late."""


class Unseen(Exception):
    """An output lies where none was shown before: it is shown now, and the call must be made again."""


class Reading(Protocol):
    """One way."""

    reach_us: list[float]
    """What it took to get at an output after the answer: work of a runner may hide in that time. Empty where it stands still."""

    def open(self, case: CaseInfo) -> None:
        """Make room for what a case answers."""

    def prepare(self, runner: Runner) -> None:
        """Right before a call."""

    def call_off(self) -> None:
        """Instead of `answered`: the call failed."""

    def answered(self, runner: Runner, call: Call) -> Call:
        """Right after the answer; raises Unseen."""

    def verify(self, runner: Runner, slot: int) -> tuple[bool, float | None, str]:
        """Compare the last outputs with the reference's answer to that slot."""

    def input_change(self, runner: Runner, slot: int) -> str:
        """What the runner changed of its inputs, in words; empty if nothing."""

    def forget(self, runner: Runner) -> None:
        """Its memory is about to be laid out anew."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass
class StoppedMemory:
    """Reads the stopped process into a page that the trusted process maps."""

    trusted: TrustedProcess
    reach_us: list[float] = field(default_factory=list)
    _page: Snapshot | None = None

    def open(self, case: CaseInfo) -> None:
        """A page that holds one call's outputs, or its inputs; a wider dtype too."""
        needed = max(2 * case.output_bytes, case.input_bytes, 4096)
        if self._page is None or self._page.size < needed:
            self.close()
            self._page = Snapshot(needed)
            self.trusted.share(self._page)

    def prepare(self, runner: Runner) -> None:
        """It will stand still."""

    def call_off(self) -> None:
        """Nobody waits."""

    def answered(self, runner: Runner, call: Call) -> Call:
        """It stands still: nothing is late."""
        return call

    def verify(self, runner: Runner, slot: int) -> tuple[bool, float | None, str]:
        """Read its outputs and have them compared."""
        assert self._page is not None
        return self.trusted.verify(runner.name, slot, runner.snapshot_outputs(self._page), runner.declared)

    def input_change(self, runner: Runner, slot: int) -> str:
        """Read its own view of the inputs and have it compared."""
        assert self._page is not None
        return self.trusted.input_change(runner.name, slot, runner.snapshot_inputs(self._page, slot))

    def forget(self, runner: Runner) -> None:
        """Addresses are looked up anew at every reading."""

    def close(self) -> None:
        """Release the page."""
        if self._page is not None:
            self._page.close()
            self._page = None


@dataclass
class ShownMemory:
    """Has the trusted process copy outputs out of memory that the runner handed over."""

    trusted: TrustedProcess
    reach_us: list[float] = field(default_factory=list)
    """Until the device was told to copy."""
    _calling_off: Signal = field(default_factory=Signal)
    _shown: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    _watched: dict[str, Runner] = field(default_factory=dict)
    _places: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What each runner said of its last output, at the answer."""
    _usual: list[float] = field(default_factory=list)
    """What copying a reference's outputs took."""

    def open(self, case: CaseInfo) -> None:
        """Another case has other outputs."""
        self._usual.clear()

    def prepare(self, runner: Runner) -> None:
        """Have the trusted process wait for the answer."""
        if self._watched.get(runner.name) is not runner:
            self.trusted.watch(runner.name, runner.mailbox.answer_fd, self._calling_off.descriptor, (layout.ANSWER_BYTES, Signal.BYTES))
            self._watched[runner.name] = runner
        self.trusted.follow(runner.name)

    def call_off(self) -> None:
        """There will be no answer."""
        self._calling_off.raise_()
        self.trusted.followed()

    def answered(self, runner: Runner, call: Call) -> Call:
        """Charge what went on while the outputs were copied."""
        followed, places = self.trusted.followed(), runner.places()
        if followed is None:
            for place in places:
                self._show(runner, place)
            raise Unseen
        if followed.places != tuple((place.address, place.nbytes) for place in places):
            raise runner.tampered("the answer page changed after the answer")
        self._places[runner.name] = [place.as_fields() for place in places]
        self.reach_us.append(followed.begun_us)
        if runner.reference:
            self._usual.append(followed.done_us)
            return call
        return replace(call, late_us=max(0.0, followed.done_us - self._allowed())) if self._usual else call

    def verify(self, runner: Runner, slot: int) -> tuple[bool, float | None, str]:
        """Have the copies compared."""
        return self.trusted.verify(runner.name, slot, self._places[runner.name], runner.declared)

    def input_change(self, runner: Runner, slot: int) -> str:
        """The slots are the trusted process's own memory: it looks for itself."""
        return self.trusted.input_change(runner.name, slot, None)

    def forget(self, runner: Runner) -> None:
        """What was shown may be given to something else."""
        if self._shown.pop(runner.name, None):
            self.trusted.forget(runner.name)

    def close(self) -> None:
        """Release the word; the trusted process ends with its mappings."""
        self._calling_off.close()

    def _allowed(self) -> float:
        return float(np.quantile(self._usual, USUAL))

    def _show(self, runner: Runner, place: OutputPlace) -> None:
        shown = self._shown.setdefault(runner.name, set())
        if (place.address, place.nbytes) in shown or place.nbytes == 0:
            return
        if len(shown) >= PLACES:
            raise runner.wrong(f"its outputs lie in more than {PLACES} places: return them where torch allocates them")
        pieces, descriptors = runner.export(place)
        try:
            why = self.trusted.show(runner.name, place.address, place.nbytes, pieces, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if why:
            raise runner.wrong(f"its output lies in memory that cannot be read ({why}): return what torch allocated")
        shown.add((place.address, place.nbytes))
