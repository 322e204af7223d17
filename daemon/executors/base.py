"""What the queue asks of an executor: a job record in, a result record out.

A job and a result are files wherever they go, so an executor may run a judge here (`local`), leave
the job in a directory that another host watches (`spool`), or hand it to a cluster.
Invariant: `run` returns a result for exactly the job it was given, or raises one of the errors named
here; when it returns or raises, nothing of the job runs any more and the device is free.
Not for: deciding what a failure means; the queue retries and the port journals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from evaluator.records import Job, Progress, Result

Started = Callable[[], Awaitable[None]]
"""Called when the device is held and before anything starts: the moment of the intent record."""

Report = Callable[[Progress], None]
"""Called with every step of a running job."""


class JudgeLost(Exception):
    """The judge ended without a result: infrastructure, worth another try."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log


class Executor(Protocol):
    """One way to run jobs on one device."""

    @property
    def device(self) -> str:
        """The device its jobs run on, e.g. `cpu` or `cuda:0`."""

    async def run(self, job: Job, *, started: Started, report: Report) -> Result:
        """Run `job` and return its result.

        Raises JudgeLost where the judge died, `daemon.errors.EnvironmentFault` where this machine cannot judge at all,
        `daemon.errors.BadRequest` where the job itself makes no sense (an unknown option).
        Cancelling it ends the job and waits until its processes are gone.
        """
