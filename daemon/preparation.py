"""What every run needs before its search: a baseline, a qualified evaluator, a measured floor.

All three are jobs like any other: through the queue, journalled, found again after a restart. A
qualification is taken over from an earlier run where the fingerprint is the same.
Invariant: no search starts with an evaluator that is not qualified for the fingerprint of this run's
own results.
Not for: anything an agent asks for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from agents.ports import RunPort
from daemon.errors import DaemonError, EnvironmentFault, Refused
from evaluator.records import Job, JobKind, Result, Status, decode, dumps
from state.files import atomic_write

OWNER = "daemon"


class Preparing(RunPort, Protocol):
    """A run's port that can also journal a result known from an earlier run."""

    async def adopt(self, job: Job, result: Result, *, owner: str, purpose: str, cause: str) -> Result:
        """Journal `result` as the answer to `job`, without running anything."""


class Qualifications:
    """Results of qualifications by fingerprint, kept for later runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, fingerprint: str, *, quick: bool) -> Result | None:
        """A passed qualification of this fingerprint, at least as thorough as asked."""
        try:
            result = decode(Result, json.loads(self._path(fingerprint).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None
        report = result.qualification
        return result if report is not None and report.qualified and (quick or not report.quick) else None

    def keep(self, result: Result) -> None:
        """Keep a passed qualification."""
        fingerprint = fingerprint_of(result)
        if fingerprint and result.qualification is not None and result.qualification.qualified:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            atomic_write(self._path(fingerprint), dumps(result))

    def _path(self, fingerprint: str) -> Path:
        return self._directory / f"{fingerprint}.json"


def fingerprint_of(result: Result) -> str:
    """The fingerprint's hash; empty where the result states none that could name a file."""
    digest = str(result.fingerprint.get("sha256") or "")
    return digest if digest.isalnum() else ""


async def prepare(port: Preparing, qualifications: Qualifications) -> None:
    """Bring the run to where its search may start; Refused or EnvironmentFault says why it may not."""
    baseline = await _measure(port, JobKind.BASELINE, purpose="baseline of the reference")
    await _qualify(port, qualifications, fingerprint=fingerprint_of(baseline))
    await _measure(port, JobKind.FLOOR, purpose="noise floor by A/A of the reference")


async def _qualify(port: Preparing, qualifications: Qualifications, *, fingerprint: str) -> None:
    quick = port.settings().get("evaluation", {}).get("qualification") != "full"
    job = _job(port, JobKind.QUALIFY, {"quick": quick})
    known = qualifications.find(fingerprint, quick=quick) if fingerprint else None
    cause = f"{OWNER}/{JobKind.QUALIFY.value}"
    if known is not None and f"job.started {cause}" not in port.state.effects:
        result = await port.adopt(job, known, owner=OWNER, purpose="qualification of an earlier run, same fingerprint", cause=cause)
    else:
        result = await _measure(port, JobKind.QUALIFY, purpose="qualification of the evaluator", options={"quick": quick})
    qualifications.keep(result)


async def _measure(port: Preparing, kind: JobKind, *, purpose: str, options: dict[str, Any] | None = None) -> Result:
    """One job that must succeed; a failure of an earlier life of the daemon is tried again, one of this life is the end."""
    begun = port.state.seq
    attempt = 0
    while True:
        await port.checkpoint(OWNER)
        cause = f"{OWNER}/{kind.value}" + (f"/again{attempt}" if attempt else "")
        result = await port.evaluate(_job(port, kind, options or {}), owner=OWNER, experiment=None, purpose=purpose, cause=cause)
        if _good(result):
            return result
        if port.state.finished_requests.get(result.job, 0) > begun:
            raise _failure(result, purpose)
        attempt += 1


def _good(result: Result) -> bool:
    if result.kind is JobKind.QUALIFY and (result.qualification is None or not result.qualification.qualified):
        return False
    return result.status is Status.OK


def _failure(result: Result, purpose: str) -> DaemonError:
    if result.qualification is not None:
        failed = dict.fromkeys(control.control for control in result.qualification.controls if not control.passed)
        return EnvironmentFault(f"the evaluator is not qualified here: {', '.join(failed)}", "run: ratchet qualify")
    return Refused(f"{purpose} failed ({result.status.value}): {result.message or 'no reason given'}", result.hint)


def _job(port: RunPort, kind: JobKind, options: dict[str, Any]) -> Job:
    configured = port.settings().get("evaluation", {}).get(kind.value, {})
    return Job(id="", kind=kind, problem=port.state.problem, device=port.state.device, options={**options, **configured})
