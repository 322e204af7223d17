"""One timed call: from waking the stopped runner until it is stopped again.

The post is written while the runner is stopped and the clock starts with its SIGCONT; the clock
ends when, after the echo, every thread is seen stopped. So a runner only ever executes on the clock:
nothing can be started before it or finished after it, in the kernel neither (a copy that a thread's
system call still makes). Source of the scheme: this project's EVALUATOR notes, CPU form.
Not for: subtracting the overhead (`protocol.overhead`) or verifying the output.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

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
    """Waking to stopped, on the judge's clock."""
    event_us: float
    """The runner's own figure: precise, forgeable."""
    code: int


_CHECK_EVERY = 4096
"""Spins between looks at the deadline; about half a millisecond."""
_PATIENT_NS = 500_000_000
_NAP_S = 0.0002
"""After half a second the judge naps between looks (an error below 0.1 %), so that a hang does not take its core away."""


def timed_call(mailbox: Mailbox, freezer: Freezer, operation: int, *, slot: int = 0, timeout_s: float, alive: Callable[[], bool]) -> Call:
    """Post, wake, wait for the echo, stop. The runner is stopped before and after."""
    nonce = mailbox.post(operation, slot)
    echo, answer = layout.ECHO, mailbox.answer
    try:
        start = freezer.resume()
        deadline, spins = start + int(timeout_s * 1e9), 0
        while answer[echo] != nonce:
            spins += 1
            if spins % _CHECK_EVERY == 0:
                _check(alive, start, deadline)
        freezer.stop()
        end = freezer.confirm()
    except NotStopping as error:
        raise CallDied(str(error)) from error
    except Stirred as error:
        raise EarlyEcho(str(error)) from error
    if not alive():
        raise CallDied("the process ended with its answer")
    if answer[echo] != nonce:
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
