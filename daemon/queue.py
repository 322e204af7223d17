"""The evaluation queue: first come, first served, one job at a time on a device.

A judge that dies, or that reports a fault of its own, is infrastructure: its start is voided, the job
is tried again, twice at most, and the candidate is never charged for it.
Invariant: between two `started` of one request there is a `voided`; the last word is always a result
or an exception; a cancelled job is out of the queue, or ended with its processes gone.
Not for: journalling (the caller's hooks do) or remembering results.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daemon.errors import EnvironmentFault
from daemon.executors.base import Executor, JudgeLost
from daemon.gauges import Gauges
from evaluator.records import Job, Progress, Result, Status, encode

RETRIES = 2
"""Further tries after a fault of the infrastructure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One job and what is to be told of its course."""

    run: str
    job: Job
    started: Callable[[], Awaitable[None]]
    """Awaited when the device is held, before the judge starts."""
    voided: Callable[[str], Awaitable[None]]
    """Awaited with the reason when a start came to nothing and another follows."""


class EvaluationQueue:
    """Jobs waiting for their device, and the ones that run."""

    def __init__(self, executors: Mapping[str, Executor], *, gauges: Gauges) -> None:
        self._executors = dict(executors)
        self._devices = {device: asyncio.Lock() for device in executors}
        self._gauges = gauges
        self._entries: dict[int, dict[str, Any]] = {}
        self._next = 0

    @property
    def devices(self) -> list[str]:
        """The devices it has an executor for."""
        return sorted(self._executors)

    async def run(self, ticket: Ticket) -> Result:
        """Run the ticket's job in its turn and return its result; see the module for failures."""
        executor = self._executors.get(ticket.job.device)
        if executor is None:
            raise EnvironmentFault(f"there is no device {ticket.job.device} here", f"devices of this daemon: {', '.join(self.devices)}")
        with self._listed(ticket) as entry:
            async with self._devices[ticket.job.device]:
                return await self._try(ticket, executor=executor, entry=entry)

    async def _try(self, ticket: Ticket, *, executor: Executor, entry: dict[str, Any]) -> Result:
        for attempt in range(RETRIES + 1):
            result = await self._once(ticket, executor=executor, entry=entry)
            if result.status is not Status.EVALUATOR_ERROR or attempt == RETRIES:
                return result
            await ticket.voided(result.message or "the judge reported a fault of its own")
        raise AssertionError("unreachable")

    async def _once(self, ticket: Ticket, *, executor: Executor, entry: dict[str, Any]) -> Result:
        begun = time.monotonic()

        async def started() -> None:
            entry["state"] = "running"
            self._publish()
            await ticket.started()

        try:
            return await executor.run(ticket.job, started=started, report=lambda step: self._report(ticket, step))
        except JudgeLost as lost:
            return _fault(ticket.job, lost, wall_s=time.monotonic() - begun)
        finally:
            entry["state"] = "waiting"
            self._gauges.set(ticket.run, "job", None)

    @contextlib.contextmanager
    def _listed(self, ticket: Ticket) -> Iterator[dict[str, Any]]:
        job = ticket.job
        self._next += 1
        number = self._next
        entry = {"run": ticket.run, "request": job.id, "kind": job.kind.value, "device": job.device, "state": "waiting"}
        self._entries[number] = entry
        self._publish()
        try:
            yield entry
        finally:
            del self._entries[number]
            self._publish()

    def _publish(self) -> None:
        self._gauges.set("", "queue", [dict(entry) for entry in self._entries.values()])

    def _report(self, ticket: Ticket, step: Progress) -> None:
        self._gauges.set(ticket.run, "job", {**encode(step), "job": ticket.job.id, "kind": ticket.job.kind.value})


def _fault(job: Job, lost: JudgeLost, *, wall_s: float) -> Result:
    return Result(
        job=job.id,
        kind=job.kind,
        status=Status.EVALUATOR_ERROR,
        message=lost.reason,
        hint="the judge is infrastructure: the candidate is not charged; see the log of the job and `ratchet doctor`",
        log=lost.log,
        problem=job.problem,
        problem_sha256=job.problem_sha256 or "",
        source_sha256=job.candidate.sha256 if job.candidate else None,
        profile=job.profile,
        wall_s=wall_s,
    )
