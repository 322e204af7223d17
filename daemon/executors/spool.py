"""Have a job judged by a worker that watches the same directory: `python -m evaluator worker --spool DIR`.

Invariant: a job lies in the spool once, whatever happens here: asked again after a restart it is found where it is,
or its result is. Cancelled, it is called off, and whoever has it stops.
Not for: starting workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from daemon.errors import EnvironmentFault
from daemon.executors.base import JudgeLost, Report, Started
from daemon.executors.local import WALL_LIMITS_S
from evaluator.errors import EvaluatorError
from evaluator.records import Job, JobKind, Progress, Result, decode, read_progress_line
from evaluator.spool.places import Spool
from evaluator.spool.worker import LEASE_S

LOOK_EVERY_S = 0.5


@dataclass(frozen=True, kw_only=True)
class SpoolExecutor:
    """The workers behind one directory, as one device."""

    device: str
    directory: Path
    limits_s: Mapping[JobKind, float] = field(default_factory=lambda: WALL_LIMITS_S)
    """Seconds of work after which a job is given up; waiting for a worker does not count."""
    lease_s: float = LEASE_S

    async def run(self, job: Job, *, started: Started, report: Report) -> Result:
        """Put `job` into the spool and wait for its result; see `Executor.run`."""
        try:
            spool = Spool(self.directory)
            name = spool.put(job)
        except (EvaluatorError, OSError) as error:
            raise EnvironmentFault(f"the spool {self.directory} cannot be used: {error}", "look at the directory and its disk") from error
        try:
            await started()
            return await self._wait(spool, name, job, report)
        except BaseException:
            spool.call_off(name)
            raise

    async def _wait(self, spool: Spool, name: str, job: Job, report: Report) -> Result:
        worked = 0.0
        said = b""
        while True:
            state = spool.state(name)
            if state == "results":
                return _read(spool, name, job)
            if state == "refused":
                why = spool.refusal(name) or "no reason was given"
                spool.take_result(name)
                raise JudgeLost(f"a worker could not read the job: {why}")
            if state is None:
                raise JudgeLost("the job is no longer in the spool: somebody removed it")
            if state == "queue" and not spool.living(self.lease_s):
                report(Progress(job=job.id, step="waiting", detail=f"no worker watches {self.directory}"))
            line = spool.progress_text(name)
            if line != said and (progress := read_progress_line(line)) is not None:
                said = line
                report(progress)
            worked += LOOK_EVERY_S if state == "claimed" else 0.0
            if worked > self.limits_s[job.kind]:
                raise JudgeLost(f"no worker answered within {self.limits_s[job.kind]:.0f} s of work")
            await asyncio.sleep(LOOK_EVERY_S)


def _read(spool: Spool, name: str, job: Job) -> Result:
    text = spool.result_text(name) or b""
    spool.take_result(name)
    try:
        result = decode(Result, msgspec.json.decode(text))
    except (ValueError, msgspec.MsgspecError) as error:
        raise JudgeLost(f"the worker's result cannot be read: {error}") from error
    if (result.job, result.kind) != (job.id, job.kind):
        raise JudgeLost(f"the worker answered {result.job} ({result.kind}), not this job")
    return result
