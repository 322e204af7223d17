"""Asks the judge for one job on behalf of a tool call.

Invariant: the job's cause is the call's, so a call executed again gets the journalled result. A result
`evaluator_error` is the infrastructure's fault: it is asked for again (as a new request) up to twice and
never held against the candidate.
Not for: choosing what to measure or what follows from it.
"""

from __future__ import annotations

import hashlib

from agents.errors import ToolError
from agents.tools.desk import Desk
from evaluator.records import Job, JobKind, Result, Source, Status

AGAIN = 2
"""How often an `evaluator_error` is asked for again."""


async def judge(desk: Desk, kind: JobKind, *, sha256: str, experiment: str, purpose: str, cause: str) -> Result:
    """The journalled result of one job on a stored candidate; a lasting infrastructure error is a `ToolError`."""
    job = _job(desk, kind, sha256)
    for again in range(AGAIN + 1):
        own_cause = cause if again == 0 else f"{cause}/again{again}"
        result = await desk.port.evaluate(job, owner=experiment, experiment=experiment, purpose=purpose, cause=own_cause)
        if result.status is not Status.EVALUATOR_ERROR:
            return result
    raise ToolError(
        f"the evaluator failed {AGAIN + 1} times on this {kind.value}: {result.message}",
        "this says nothing about the candidate; go on with other work and ask again later",
    )


def source_of(text: str) -> Source:
    """A source text with its address."""
    return Source(sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(), text=text)


def _job(desk: Desk, kind: JobKind, sha256: str) -> Job:
    state = desk.port.state
    champion = source_of(desk.port.candidate(state.champion)) if kind is JobKind.AB and state.champion else None
    return Job(
        id="",
        kind=kind,
        problem=state.problem,
        problem_sha256=state.problem_sha256 or None,
        candidate=source_of(desk.port.candidate(sha256)),
        champion=champion,
        profile=state.profile or "open",
        device=state.device or "cpu",
        options=desk.settings.job_options(kind),
    )
