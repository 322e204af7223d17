"""The spool's directory: jobs in, results out.

Invariant: a job lies in exactly one of `queue/` and `claimed/` until its result is in `results/`; a claim whose
heart stopped goes back to the queue; what cannot be read is put aside with the reason, never dropped. Ages are
taken by the file system's own clock, so that hosts whose clocks differ agree.
Not for: running a job (`worker`), or for asking for one (the daemon's executor).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import EnvironmentFault, EvaluatorError
from evaluator.jobfile import read_job, write_result
from evaluator.records import Job, Progress, Result, dumps, progress_line

FOLDERS = ("queue", "claimed", "results", "progress", "refused", "workers")
AT = "@"
"""Between a job's name and its worker's in `claimed/`."""

_NAME = re.compile(r"[0-9a-f]{40}")


class Lost(Exception):
    """A claim that is no longer this worker's: its heart was taken for stopped, or the job was called off."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One job that a worker has."""

    name: str
    path: Path
    job: Job


def name_of(job_id: str) -> str:
    """Name of a job's files."""
    return hashlib.sha256(job_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class Spool:
    """One directory, seen by every host that takes part."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            for folder in FOLDERS:
                (root / folder).mkdir(parents=True, exist_ok=True)
            self.now()
        except OSError as error:
            raise EnvironmentFault(
                f"the spool {root} cannot be used: {error.strerror}", "choose a directory that can be written"
            ) from error

    def now(self) -> float:
        """The file system's time, seconds."""
        probe = self.root / "workers" / f".clock-{os.uname().nodename}-{os.getpid()}"
        with probe.open("w"):
            os.utime(probe)
        return probe.stat().st_mtime

    def put(self, job: Job) -> str:
        """Queue a job; nothing the second time. Returns its name."""
        name = name_of(job.id)
        if self.state(name) is None:
            _write(self.root / "queue" / f"{name}.json", dumps(job))
        return name

    def state(self, name: str) -> str | None:
        """`queue`, `claimed`, `results` or `refused`; None where there is no such job."""
        for folder in ("results", "refused", "queue"):
            if (self.root / folder / f"{name}.json").exists():
                return folder
        return "claimed" if any((self.root / "claimed").glob(f"{name}{AT}*")) else None

    def call_off(self, name: str) -> None:
        """Take a job back: whoever has it finds its claim gone."""
        for path in (self.root / "queue" / f"{name}.json", *(self.root / "claimed").glob(f"{name}{AT}*"), self._progress(name)):
            path.unlink(missing_ok=True)

    def claim(self, worker: str) -> Claim | None:
        """The oldest job that nobody has, or None. A file that is no job is refused on the way."""
        for path in sorted((self.root / "queue").glob("*.json"), key=_age_key):
            mine = self.root / "claimed" / f"{path.stem}{AT}{worker}"
            try:
                os.utime(path)  # before it is ours: a claim is never older than its worker's last beat
                path.rename(mine)
                why = _unfit(mine)
                if not why:
                    return Claim(path.stem, mine, read_job(mine))
            except FileNotFoundError:
                continue
            except EvaluatorError as error:
                if not mine.exists():
                    continue
                why = error.message
            self._refuse(path.stem, mine, why)
        return None

    def beat(self, claim: Claim) -> None:
        """Say that the claim is still worked on; Lost where it is no longer this worker's."""
        try:
            os.utime(claim.path)
        except FileNotFoundError:
            raise Lost(claim.name) from None

    def tell(self, claim: Claim, progress: Progress) -> None:
        """Say how far it is; a full disk loses no more than that."""
        with contextlib.suppress(OSError):
            _write(self._progress(claim.name), progress_line(progress))

    def finish(self, claim: Claim, result: Result) -> None:
        """Write the result, then let go of the claim; Lost where it was given to somebody else, whose result counts then."""
        self.beat(claim)
        write_result(self.root / "results" / f"{claim.name}.json", result)
        claim.path.unlink(missing_ok=True)
        self._progress(claim.name).unlink(missing_ok=True)

    def give_back(self, claim: Claim) -> None:
        """Queue it again, for any worker."""
        with contextlib.suppress(FileNotFoundError):
            claim.path.rename(self.root / "queue" / f"{claim.name}.json")

    def recover(self, lease_s: float) -> list[str]:
        """Queue every claim again whose heart did not beat for so long; returns their names."""
        now, found = self.now(), []
        for path in (self.root / "claimed").iterdir():
            name = path.name.partition(AT)[0]
            with contextlib.suppress(FileNotFoundError):
                if now - path.stat().st_mtime > lease_s:
                    path.rename(self.root / "queue" / f"{name}.json")
                    found.append(name)
        return found

    def greet(self, worker: str, device: str) -> None:
        """Say that a worker for a device lives."""
        _write(self.root / "workers" / f"{worker}.json", json.dumps({"device": device}))

    def leave(self, worker: str) -> None:
        """A worker ends."""
        (self.root / "workers" / f"{worker}.json").unlink(missing_ok=True)

    def living(self, lease_s: float) -> list[str]:
        """Workers that said so lately."""
        now = self.now()
        return [path.stem for path in (self.root / "workers").glob("*.json") if now - _modified(path) <= lease_s]

    def result_text(self, name: str) -> bytes | None:
        """The result's file, or None while there is none."""
        with contextlib.suppress(FileNotFoundError):
            return (self.root / "results" / f"{name}.json").read_bytes()
        return None

    def refusal(self, name: str) -> str | None:
        """Why a file was put aside, or None."""
        with contextlib.suppress(FileNotFoundError):
            return (self.root / "refused" / f"{name}.why").read_text(encoding="utf-8")
        return None

    def progress_text(self, name: str) -> bytes:
        """The last line about a job; empty where there is none."""
        with contextlib.suppress(FileNotFoundError):
            return self._progress(name).read_bytes()
        return b""

    def take_result(self, name: str) -> None:
        """The result was read and is kept elsewhere."""
        for path in (self.root / "results" / f"{name}.json", *self._aside(name)):
            path.unlink(missing_ok=True)

    def _refuse(self, name: str, path: Path, why: str) -> None:
        aside, reason = self._aside(name)
        _write(reason, why)
        with contextlib.suppress(FileNotFoundError):
            path.rename(aside)

    def _aside(self, name: str) -> tuple[Path, Path]:
        return self.root / "refused" / f"{name}.json", self.root / "refused" / f"{name}.why"

    def _progress(self, name: str) -> Path:
        return self.root / "progress" / f"{name}.json"


@contextlib.contextmanager
def member(spool: Spool, worker: str, device: str) -> Iterator[None]:
    """A worker's life in a spool."""
    spool.greet(worker, device)
    try:
        yield
    finally:
        spool.leave(worker)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _age_key(path: Path) -> tuple[float, str]:
    return _modified(path), path.name


def _unfit(path: Path) -> str:
    """Why a file in the queue is none of ours, in words; empty where it may be one."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return "it is not a regular file"
    if not _NAME.fullmatch(path.name.partition(AT)[0]) or path.name.count(AT) != 1:
        return "its name is not that of a job: 40 hexadecimal digits"
    return ""
