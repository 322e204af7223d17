"""Worker's tools on its own candidates: `submit_candidate`, `check`, `evaluate`.

Invariant: a candidate's text is stored under its hash before the record that names it; a worker only
ever reaches candidates of its own experiment; a check's answer holds no protected figure.
Not for: the A/B and what follows, which are the orchestrator's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agents.bounds import bad_characters, line
from agents.errors import ToolError
from agents.tools.desk import Desk, find_experiment
from agents.tools.judging import judge
from agents.tools.tool import Tool, ToolInput
from agents.tools.views import check_view, evaluation_view
from evaluator.records import JobKind
from state.events import CandidateSubmitted


class SubmitCandidate(ToolInput, frozen=True, kw_only=True):
    """One candidate source."""

    source: str
    """The whole Python module, with the entry point the problem asks for."""
    note: str = ""
    """One line: what this version does differently."""


class OwnCandidate(ToolInput, frozen=True, kw_only=True):
    """Names one of the experiment's candidates."""

    candidate: str = "latest"
    """`latest`, or the start of its sha256."""


def make_submit_candidate(desk: Desk) -> Tool[SubmitCandidate]:
    """Store a candidate."""

    async def run(asked: SubmitCandidate, cause: str) -> dict[str, Any]:
        if why := bad_characters(asked.source):
            raise ToolError(why, "submit the whole module as plain text")
        sha256 = await desk.port.store(asked.source)
        submitted = CandidateSubmitted(
            experiment=own_experiment(desk),
            sha256=sha256,
            bytes=len(asked.source.encode("utf-8")),
            note=line(asked.note),
            cause=cause,
        )
        record = await desk.port.record("candidate.submitted", desk.agent, submitted)
        return {"candidate": msgspec.convert(record.data, CandidateSubmitted).sha256}

    about = "Store one candidate: the whole module. Nothing is built or measured yet."
    return Tool(name="submit_candidate", about=about, takes=SubmitCandidate, run=run)


def make_check(desk: Desk) -> Tool[OwnCandidate]:
    """Build and correctness."""

    async def run(asked: OwnCandidate, cause: str) -> dict[str, Any]:
        sha256 = own_candidate(desk, asked.candidate)
        result = await judge(desk, JobKind.CHECK, sha256=sha256, experiment=own_experiment(desk), purpose="check", cause=cause)
        return {"candidate": sha256, **check_view(result)}

    about = "Build a candidate and compare its outputs on fresh inputs. Answers compiler output and mismatches; it times nothing."
    return Tool(name="check", about=about, takes=OwnCandidate, run=run)


def make_evaluate_own(desk: Desk) -> Tool[OwnCandidate]:
    """Rung 1 for a worker."""

    async def run(asked: OwnCandidate, cause: str) -> dict[str, Any]:
        sha256 = own_candidate(desk, asked.candidate)
        result = await judge(desk, JobKind.EVALUATE, sha256=sha256, experiment=own_experiment(desk), purpose="rung 1", cause=cause)
        return {"candidate": sha256, **evaluation_view(result)}

    about = (
        "Rung 1: one protected evaluation of a candidate against the reference. Believe it only where it is clearly above the case's floor."
    )
    return Tool(name="evaluate", about=about, takes=OwnCandidate, run=run)


def own_experiment(desk: Desk) -> str:
    """Id of the worker's experiment."""
    if desk.experiment is None:
        raise ToolError("this agent has no experiment", "only a worker has candidates")
    return desk.experiment


def own_candidate(desk: Desk, name: str) -> str:
    """sha256 of one of the experiment's candidates."""
    candidates = find_experiment(desk.port, own_experiment(desk)).candidates
    if not candidates:
        raise ToolError("this experiment has no candidate yet", "call `submit_candidate` first")
    if name in ("latest", ""):
        return candidates[-1]
    matches = [sha256 for sha256 in candidates if sha256.startswith(name)]
    if len(matches) != 1:
        raise ToolError(f"`{name}` is none of this experiment's candidates", "candidates: " + ", ".join(s[:12] for s in candidates))
    return matches[0]
