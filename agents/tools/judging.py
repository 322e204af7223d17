"""Asks the judge for one job on behalf of a tool call.

Invariant: the job's cause is the call's, so a call executed again gets the journalled result.
Not for: choosing what to measure or what follows from it.
"""

from __future__ import annotations

from agents.asking import EvaluatorFailed, ask, job_for, source_of
from agents.errors import ToolError
from agents.tools.desk import Desk
from evaluator.records import JobKind, Result


async def judge(desk: Desk, kind: JobKind, *, sha256: str, experiment: str, purpose: str, cause: str) -> Result:
    """The journalled result of one job on a stored candidate; a lasting infrastructure error is a `ToolError`."""
    port = desk.port
    champion = source_of(port.candidate(port.state.champion)) if kind is JobKind.AB and port.state.champion else None
    candidate = source_of(port.candidate(sha256))
    job = job_for(port, kind, candidate=candidate, champion=champion, options=desk.settings.job_options(kind))
    try:
        return await ask(port, job, owner=experiment, experiment=experiment, purpose=purpose, cause=cause)
    except EvaluatorFailed as error:
        raise ToolError(str(error), "this says nothing about the candidate; go on with other work and ask again later") from error
