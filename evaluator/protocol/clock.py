"""One timed call, by one of two clocks.

`Stopped`: the runner is stopped between its calls. The post is written while it is stopped, the clock
starts with its SIGCONT and ends when, after the echo, every thread is seen stopped: it only ever
executes on the clock, and nothing can be started before it or finished after it, in the kernel neither.
`Spinning`: where waking a process up would cost more than what is measured, the runner spins on the
request page. The clock starts just before the nonce is written and ends with the echo; what it did
before and after is bounded otherwise (many slots, a touch, the time that copying its output takes). It
rests, stopped, while another runner has its turn.
Source of the scheme: this project's EVALUATOR notes.
Not for: subtracting the overhead (`protocol.overhead`) or verifying the output.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evaluator.protocol.freeze import Freezer, NotStopping, Stirred
from evaluator.protocol.mailbox import EarlyEcho, Mailbox
from evaluator.runner import layout


class CallTimeout(Exception):
    """No echo within the deadline."""


class CallDied(Exception):
    """The runner ended during the call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call's two times."""

    wall_us: float
    """On the judge's clock: waking to stopped, or post to echo."""
    event_us: float
    """The runner's own figure: precise, forgeable."""
    code: int
    late_us: float = 0.0
    """What came outside the clock, beyond the same of a reference: in the touch before it, or while its output was copied."""


_BARE_TIMEOUT_S = 5.0
_CHECK_EVERY = 4096
"""Spins between looks at the deadline; about half a millisecond."""
_PATIENT_NS = 500_000_000
_NAP_S = 0.0002
"""After half a second the judge naps between looks (an error below 0.1 %), so that a hang does not take its core away."""


class Clock(Protocol):
    """How one runner is timed."""

    def call(self, operation: int, *, slot: int, timeout_s: float, alive: Callable[[], bool]) -> Call:
        """Post, wait for the echo, and return both times."""

    def wake(self) -> None:
        """Let the runner execute, for what is not timed."""

    def rest(self) -> None:
        """See that it does not execute."""

    def bare_us(self) -> float:
        """What the shortest request takes: a native answer could save the rest of an empty call."""


class Stopped:
    """Wakes a stopped runner for every call and stops it at the answer."""

    def __init__(self, mailbox: Mailbox, freezer: Freezer) -> None:
        self._mailbox = mailbox
        self._freezer = freezer

    def call(self, operation: int, *, slot: int, timeout_s: float, alive: Callable[[], bool]) -> Call:
        """Post, wake, wait for the echo, stop. The runner is stopped before and after."""
        nonce = self._mailbox.post(operation, slot)
        try:
            start = self._freezer.resume()
            _await(self._mailbox, nonce, start, timeout_s, alive)
            self._freezer.stop()
            end = self._freezer.confirm()
        except NotStopping as error:
            raise CallDied(str(error)) from error
        except Stirred as error:
            raise EarlyEcho(str(error)) from error
        return _answered(self._mailbox, nonce, start, end, alive)

    def wake(self) -> None:
        """Continue it."""
        self._freezer.resume()

    def rest(self) -> None:
        """Stop it; it is stopped already where it was only called."""
        self._freezer.rest()

    def bare_us(self) -> float:
        """Wake it and stop it."""
        start = self._freezer.resume()
        self._freezer.stop()
        return (self._freezer.confirm() - start) / 1e3


class Spinning:
    """Calls a runner that spins on the request page; it stays awake until its turn ends."""

    def __init__(self, mailbox: Mailbox, freezer: Freezer) -> None:
        self._mailbox = mailbox
        self._freezer = freezer

    def call(self, operation: int, *, slot: int, timeout_s: float, alive: Callable[[], bool]) -> Call:
        """Post and wait for the echo."""
        try:
            self.wake()
        except NotStopping as error:
            raise CallDied(str(error)) from error
        except Stirred as error:
            raise EarlyEcho(str(error)) from error
        start = time.perf_counter_ns()
        nonce = self._mailbox.post(operation, slot)
        _await(self._mailbox, nonce, start, timeout_s, alive)
        end = time.perf_counter_ns()
        return _answered(self._mailbox, nonce, start, end, alive)

    def wake(self) -> None:
        """Continue it where it rests."""
        if self._freezer.stopped:
            self._freezer.resume()

    def rest(self) -> None:
        """Stop it."""
        self._freezer.rest()

    def bare_us(self) -> float:
        """A post that is echoed at once."""
        return self.call(layout.BARE, slot=0, timeout_s=_BARE_TIMEOUT_S, alive=lambda: True).wall_us


def _await(mailbox: Mailbox, nonce: int, start: int, timeout_s: float, alive: Callable[[], bool]) -> None:
    echo, answer = layout.ECHO, mailbox.answer
    deadline, spins = start + int(timeout_s * 1e9), 0
    while answer[echo] != nonce:
        spins += 1
        if spins % _CHECK_EVERY == 0:
            _check(alive, start, deadline)


def _answered(mailbox: Mailbox, nonce: int, start: int, end: int, alive: Callable[[], bool]) -> Call:
    if not alive():
        raise CallDied("the process ended with its answer")
    if mailbox.answer[layout.ECHO] != nonce:
        raise EarlyEcho("the echo changed after the answer")
    return Call((end - start) / 1e3, mailbox.event_us(), mailbox.code())


def _check(alive: Callable[[], bool], start: int, deadline: int) -> None:
    now = time.perf_counter_ns()
    if not alive():
        raise CallDied("the process ended during the call")
    if now > deadline:
        raise CallTimeout("no answer within the deadline")
    if now - start > _PATIENT_NS:
        time.sleep(_NAP_S)
