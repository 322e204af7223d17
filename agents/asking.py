"""Asks the judge for one job, and tells a result from a failure of the infrastructure.

Invariant: a job's cause is stable, so a request made again after a kill gets the journalled result. A
result `evaluator_error` is never held against a candidate. The evaluation queue has tried it again by
then: it is not asked for once more.
Not for: choosing what to measure or what follows from it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from agents.ports import RunPort
from evaluator.records import Job, JobKind, Result, Source, Status


class EvaluatorFailed(Exception):
    """The evaluator failed each time that it tried the job."""


async def ask(port: RunPort, job: Job, *, owner: str, experiment: str | None, purpose: str, cause: str) -> Result:
    """The journalled result of a job; `EvaluatorFailed` when it is an infrastructure error."""
    result = await port.evaluate(job, owner=owner, experiment=experiment, purpose=purpose, cause=cause)
    if result.status is Status.EVALUATOR_ERROR:
        raise EvaluatorFailed(f"the evaluator failed on this {job.kind.value}, also when it was tried again: {result.message}")
    return result


def job_for(port: RunPort, kind: JobKind, *, candidate: Source, champion: Source | None = None, options: dict[str, Any]) -> Job:
    """A job on the run's problem, device and profile; its id is the port's to give."""
    state = port.state
    return Job(
        id="",
        kind=kind,
        problem=state.problem,
        problem_sha256=state.problem_sha256 or None,
        candidate=candidate,
        champion=champion,
        profile=state.profile or "open",
        device=state.device or "cpu",
        options=options,
    )


def source_of(text: str) -> Source:
    """A source text with its address."""
    return Source(sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(), text=text)
