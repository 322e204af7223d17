"""Run a judge on this machine: `python -m evaluator run JOBFILE --result RESULTFILE`.

The judge is a subprocess in a group of its own that holds the device lease with us. Its stdout is
progress, its stderr is a log, its answer is a file.
Invariant: when `run` is left, by any way, the group is gone and the job's directory is removed.
Not for: reading anything out of the result beyond that it answers this job.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from daemon import affinity, environment, lease, processes
from daemon.errors import BadRequest, DaemonError, EnvironmentFault
from daemon.executors.base import JudgeLost, Report, Started
from daemon.executors.output import read_progress, read_tail
from daemon.tasks import finish
from evaluator.records import Job, JobKind, Progress, Result, decode, dumps

PACKAGES = Path(__file__).resolve().parent.parent.parent
"""The directory that our packages lie in: the judge's working directory, so that `-m evaluator` is ours."""

WALL_LIMITS_S: Mapping[JobKind, float] = {
    JobKind.CHECK: 900,
    JobKind.BENCH: 1800,
    JobKind.PROFILE: 900,
    JobKind.EVALUATE: 1800,
    JobKind.AB: 3600,
    JobKind.FLOOR: 3600,
    JobKind.BASELINE: 1800,
    JobKind.ROBUSTNESS: 1800,
    JobKind.QUALIFY: 7200,
}
"""Seconds after which a judge that has not answered is given up: far above what the judge allows itself."""

JOB_FILE = "job.json"

_SAID: Mapping[int | None, type[DaemonError]] = {BadRequest.code: BadRequest, EnvironmentFault.code: EnvironmentFault}
"""Exit codes with which a judge says in words why it will not judge: trying again would not help."""

_RESULT_LIMIT = 64 * 1024 * 1024


def judge_command() -> list[str]:
    """The judge of this installation."""
    return [sys.executable, "-m", "evaluator", "run"]


@dataclass(frozen=True, kw_only=True)
class LocalExecutor:
    """One judge at a time on one device of this machine."""

    device: str
    jobs: Path
    """Directory for the files of running jobs."""
    command: Sequence[str] = field(default_factory=judge_command)
    """`JOBFILE --result RESULTFILE` is appended."""
    layout: affinity.Plan = field(default_factory=affinity.current)
    limits_s: Mapping[JobKind, float] = field(default_factory=lambda: WALL_LIMITS_S)
    lease_dir: Path | None = None

    async def run(self, job: Job, *, started: Started, report: Report) -> Result:
        """Run `job` under the device lease; see `Executor.run`."""

        def waiting() -> None:
            report(Progress(job=job.id, step="waiting", detail=f"device {self.device} is held by another process"))

        async with lease.hold(self.device, directory=self.lease_dir, waiting=waiting) as held:
            await started()
            directory = _job_directory(self.jobs, job)
            try:
                return await self._judge(job, directory=directory, held=held, report=report)
            finally:
                shutil.rmtree(directory, ignore_errors=True)

    async def _judge(self, job: Job, *, directory: Path, held: int, report: Report) -> Result:
        result_file = directory / "result.json"
        command = [*self.command, str(directory / JOB_FILE), "--result", str(result_file)]
        process = await self._spawn(processes.recording(command, processes.record_path(directory)), held=held)
        assert process.stdout is not None
        assert process.stderr is not None
        log = asyncio.create_task(read_tail(process.stderr), name="judge-stderr")
        progress = asyncio.create_task(read_progress(process.stdout, report), name="judge-stdout")
        try:
            async with asyncio.timeout(self.limits_s[job.kind]):
                await process.wait()
        except TimeoutError as error:
            raise JudgeLost(f"the judge did not answer within {self.limits_s[job.kind]:.0f} s and was stopped") from error
        finally:
            await finish(_end(process, (log, progress)))
        return _read_result(job, result_file, exit_status=process.returncode, log=_text(log))

    async def _spawn(self, command: list[str], *, held: int) -> asyncio.subprocess.Process:
        try:
            with affinity.unpinned(self.layout):
                return await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=environment.for_judge(os.environ),
                    cwd=PACKAGES,
                    start_new_session=True,
                    pass_fds=(held,),
                )
        except OSError as error:
            raise JudgeLost(f"the judge could not be started: {error.strerror}") from error


def _job_directory(jobs: Path, job: Job) -> Path:
    """A directory for this start, with the job in it."""
    try:
        directory = Path(tempfile.mkdtemp(prefix="job-", dir=jobs))
        (directory / JOB_FILE).write_text(dumps(job), encoding="utf-8")
    except OSError as error:
        raise JudgeLost(f"the job's files cannot be written: {error.strerror}") from error
    return directory


async def _end(process: asyncio.subprocess.Process, readers: tuple[asyncio.Task[str], asyncio.Task[None]]) -> None:
    """End whatever is left of the group and let the readers see the end of their pipes."""
    await processes.end_group(process.pid)
    await process.wait()
    _, stuck = await asyncio.wait(readers, timeout=2.0)
    for reader in stuck:
        reader.cancel()


def _text(log: asyncio.Task[str]) -> str:
    return log.result() if log.done() and not log.cancelled() and log.exception() is None else ""


def _read_result(job: Job, result_file: Path, *, exit_status: int | None, log: str) -> Result:
    if exit_status in _SAID:
        lines = [line.strip() for line in log.splitlines() if line.strip()] or [f"the judge {_ended(exit_status)} and gave no reason"]
        raise _SAID[exit_status](lines[0][:400], lines[1][:400] if len(lines) > 1 else "run: ratchet doctor")
    if not result_file.exists():
        raise JudgeLost(f"the judge {_ended(exit_status)} without a result", log)
    try:
        if result_file.stat().st_size > _RESULT_LIMIT:
            raise ValueError("it is too large")
        result = decode(Result, msgspec.json.decode(result_file.read_bytes()))
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise JudgeLost(f"the judge's result cannot be read: {error}", log) from error
    if result.job != job.id or result.kind != job.kind:
        raise JudgeLost(f"the judge answered {result.job} ({result.kind}), not this job", log)
    return result


def _ended(exit_status: int | None) -> str:
    if exit_status is None:
        return "ended"
    if exit_status < 0:
        return f"was killed by {signal.Signals(-exit_status).name}"
    return f"ended with exit status {exit_status}"
