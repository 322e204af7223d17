"""`python -m evaluator worker --spool DIR`: takes jobs out of a spool and has a judge of its own answer each.

A judge is a process: whatever happens to it, the worker goes on. While it works the claim's heart beats; a
worker that dies leaves a claim that another takes up. A judge that says in words why it will not judge has
answered: that becomes an `evaluator_error` with its words.
Invariant: a claim ends in a result, or back in the queue, or with somebody else; never nowhere.
Not for: what a result means, or for retrying (whoever asked decides).
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from evaluator.errors import EnvironmentFault
from evaluator.jobfile import read_result
from evaluator.judge.workplace import workplace
from evaluator.records import Result, Status, dumps, read_progress_line
from evaluator.spool.places import Claim, Lost, Spool, member

LEASE_S = 60.0
"""A claim whose heart did not beat for so long is somebody else's to take."""
BEATS = 6
"""Beats in one lease."""
LOOK_EVERY_S = 0.5
LOG_BYTES = 64 * 1024
ROOT = Path(__file__).resolve().parents[2]

Say = Callable[[str], None]


@dataclass(slots=True)
class Worker:
    """One worker of a spool."""

    spool: Spool
    device: str
    """What its jobs run on here, whatever the asker calls it."""
    say: Say
    judge: Sequence[str] = (sys.executable, "-m", "evaluator", "run")
    """`JOBFILE --result RESULTFILE` is appended."""
    lease_s: float = LEASE_S
    name: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    _told_to_end: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        """Give the job at hand back and stop."""
        self._told_to_end.set()

    def work(self, *, once: bool = False) -> int:
        """Answer jobs until told to end, or with `once` until the queue is empty; how many were answered."""
        answered = 0
        with member(self.spool, self.name, self.device):
            while not self._told_to_end.is_set():
                for name in self.spool.recover(self.lease_s):
                    self.say(f"taken up again: {name[:12]}")
                claim = self.spool.claim(self.name)
                if claim is not None:
                    answered += self._answer(claim)
                elif once:
                    break
                else:
                    self._told_to_end.wait(LOOK_EVERY_S)
                self.spool.greet(self.name, self.device)
        return answered

    def _answer(self, claim: Claim) -> bool:
        self.say(f"{claim.job.kind.value} {claim.job.id}")
        begun = time.monotonic()
        with workplace() as work:
            try:
                result = self._judge(claim, work)
                if result is None:
                    self.spool.give_back(claim)
                    return False
                self._finish(claim, result)
            except Lost:
                self.say(f"lost {claim.job.id}: called off, or taken for dead")
                return False
        self.say(f"{result.status.value} {claim.job.id}, {time.monotonic() - begun:.1f} s")
        return True

    def _finish(self, claim: Claim, result: Result) -> None:
        """A full disk is waited for: the measurement is not thrown away while the claim is ours."""
        while True:
            try:
                self.spool.finish(claim, result)
                return
            except EnvironmentFault as error:
                self.say(f"{error.message}; trying again")
                self.spool.beat(claim)
                if self._told_to_end.wait(self.lease_s / BEATS):
                    raise Lost(claim.name) from error

    def _judge(self, claim: Claim, work: Path) -> Result | None:
        """The judge's result; None where the worker was told to end meanwhile."""
        jobfile, resultfile = work / "job.json", work / "result.json"
        jobfile.write_text(dumps(replace(claim.job, device=self.device)), encoding="utf-8")
        process = subprocess.Popen(
            [*self.judge, str(jobfile), "--result", str(resultfile)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        log = _Tail(process.stderr)
        lines = _Lines(process.stdout)
        try:
            while process.poll() is None:
                if self._told_to_end.is_set():
                    return None
                self.spool.beat(claim)
                self._tell(claim, lines, self.lease_s / BEATS)
        finally:
            _end(process)
        return _result(claim, resultfile, process.returncode, log.text())

    def _tell(self, claim: Claim, lines: _Lines, seconds: float) -> None:
        """Pass progress on for a while; sooner back when the judge ends."""
        until = time.monotonic() + seconds
        while not self._told_to_end.is_set() and (left := until - time.monotonic()) > 0:
            line = lines.next(min(left, LOOK_EVERY_S))
            if line is None:
                if lines.ended:
                    return
            elif (progress := read_progress_line(line)) is not None:
                self.spool.tell(claim, progress)


class _Lines:
    """Lines of a pipe, read by a thread of their own."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.ended = False
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def next(self, seconds: float) -> bytes | None:
        """The next line, or None where there is none for so long."""
        if self.ended:
            time.sleep(min(seconds, 0.05))
            return None
        with contextlib.suppress(queue.Empty):
            line = self._queue.get(timeout=seconds)
            self.ended = line is None
            return line
        return None

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(LOG_BYTES):
                self._queue.put(line)
        self._queue.put(None)


class _Tail:
    """The end of what a pipe said."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """All of it that is kept."""
        self._thread.join(2.0)
        return self._kept.decode("utf-8", "replace")

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read1(LOG_BYTES):  # type: ignore[attr-defined]
                self._kept = (self._kept + chunk)[-LOG_BYTES:]


def _result(claim: Claim, path: Path, code: int, log: str) -> Result:
    job = claim.job
    try:
        result = read_result(path)
        if (result.job, result.kind) == (job.id, job.kind):
            return result
        message, hint = f"the judge answered {result.job}, not this job", ""
    except (OSError, ValueError):
        said = [line.strip() for line in log.splitlines() if line.strip()]
        message = said[0].removeprefix("evaluator: ") if said else f"the judge ended with exit status {code} and without a result"
        hint = said[1].removeprefix("mend: ") if len(said) > 1 else "look at the worker's host: `ratchet doctor`"
    return Result(
        job=job.id,
        kind=job.kind,
        status=Status.EVALUATOR_ERROR,
        message=message[:2000],
        hint=hint[:2000],
        log=log[-16_000:],
        problem=job.problem,
        problem_sha256=job.problem_sha256 or "",
        source_sha256=job.candidate.sha256 if job.candidate else None,
        profile=job.profile,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """The judge and all that is left of its group; its sandboxes die with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
