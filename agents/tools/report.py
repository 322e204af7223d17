"""Worker's tool `report`: ends an experiment's work with an attributable conclusion.

Invariant: a report is given once; it names one of the experiment's own candidates or none.
Not for: reconciliation, which is the orchestrator's.
"""

from __future__ import annotations

from typing import Any

from agents.bounds import clip, line, plain
from agents.errors import ToolError
from agents.tools.candidate import own_candidate, own_experiment
from agents.tools.desk import Desk
from agents.tools.tool import Tool, ToolInput
from state.events import ExperimentReported


class Report(ToolInput, frozen=True, kw_only=True):
    """What came of it, also when it failed."""

    conclusion: str
    """One line: what was found, and what it is attributed to."""
    report: str
    """What was tried, what was measured, why it came out so, what to try next."""
    final: str | None = None
    """`latest` or the start of the sha256 of the candidate the experiment stands for; null when none is worth keeping."""


def make_report(desk: Desk) -> Tool[Report]:
    """Close the work on one experiment."""

    async def run(asked: Report, cause: str) -> dict[str, Any]:
        if not asked.conclusion.strip() or not asked.report.strip():
            raise ToolError(
                "a report needs a conclusion and its reasons", "say what was found and what it is attributed to, also for a failure"
            )
        reported = ExperimentReported(
            experiment=own_experiment(desk),
            conclusion=line(asked.conclusion, 240),
            report=clip(plain(asked.report), 8000),
            final=own_candidate(desk, asked.final) if asked.final else None,
            cause=cause,
        )
        await desk.port.record("experiment.reported", desk.agent, reported)
        return {"experiment": reported.experiment, "final": reported.final}

    about = "End the work on this experiment with a conclusion that says why, and the candidate it stands for (or none)."
    return Tool(name="report", about=about, takes=Report, run=run, ends=True)
