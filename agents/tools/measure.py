"""Orchestrator's tools on the ladder: `evaluate` (rung 1), `robustness`, `request_ab` (rung 3).

Invariant: a candidate reaches rung 3 only after a protected evaluation found that same text correct.
Not for: what follows from a verdict (`tools.retain`).
"""

from __future__ import annotations

from typing import Any

from agents.errors import ToolError
from agents.tools.desk import Desk, find_experiment, standing_candidate
from agents.tools.judging import judge
from agents.tools.tool import Tool, ToolInput
from agents.tools.views import evaluation_view, robustness_view, verdict_view
from evaluator.records import JobKind
from state.model import Experiment


class OfExperiment(ToolInput, frozen=True, kw_only=True):
    """Names one experiment."""

    experiment: str
    """Its id, e.g. `E3`; the candidate it stands for is measured."""


def make_evaluate(desk: Desk) -> Tool[OfExperiment]:
    """Rung 1."""

    async def run(asked: OfExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        sha256 = standing_candidate(experiment)
        result = await judge(desk, JobKind.EVALUATE, sha256=sha256, experiment=experiment.id, purpose="rung 1", cause=cause)
        return {"experiment": experiment.id, "sha256": sha256, **evaluation_view(result)}

    about = (
        "Rung 1: one protected evaluation of an experiment's candidate against the reference. Believe it only where it "
        "is clearly above the case's floor."
    )
    return Tool(name="evaluate", about=about, takes=OfExperiment, run=run)


def make_robustness(desk: Desk) -> Tool[OfExperiment]:
    """Correctness beyond the benchmark."""

    async def run(asked: OfExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        sha256 = evaluated_candidate(experiment)
        result = await judge(desk, JobKind.ROBUSTNESS, sha256=sha256, experiment=experiment.id, purpose="robustness", cause=cause)
        return {"experiment": experiment.id, "sha256": sha256, **robustness_view(result)}

    about = "Correctness beyond the benchmark's own inputs and sizes; needed before a promotion. It times nothing."
    return Tool(name="robustness", about=about, takes=OfExperiment, run=run)


def make_request_ab(desk: Desk) -> Tool[OfExperiment]:
    """Rung 3."""

    async def run(asked: OfExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        sha256 = evaluated_candidate(experiment)
        if sha256 == desk.port.state.champion:
            raise ToolError(f"{experiment.id}'s candidate is the champion itself", "there is nothing to compare")
        result = await judge(desk, JobKind.AB, sha256=sha256, experiment=experiment.id, purpose="rung 3", cause=cause)
        return {"experiment": experiment.id, "sha256": sha256, **verdict_view(result)}

    about = (
        "Rung 3: symmetric A/B of an experiment's candidate against the current champion. Needed before every promotion. "
        "`gain` is how many times faster than the champion; `decision` is faster, slower or unresolved."
    )
    return Tool(name="request_ab", about=about, takes=OfExperiment, run=run)


def evaluated_candidate(experiment: Experiment) -> str:
    """sha256 of the candidate an experiment stands for, once a protected evaluation found that text correct."""
    sha256 = standing_candidate(experiment)
    evaluation = experiment.evaluation
    if evaluation is None or evaluation.sha256 != sha256:
        raise ToolError(
            f"{experiment.id}'s candidate has no protected evaluation", f"call `evaluate` with experiment {experiment.id} first"
        )
    if evaluation.status != "ok":
        raise ToolError(
            f"{experiment.id}'s evaluation ended as {evaluation.status}: {evaluation.message}", "only a correct candidate goes further"
        )
    return sha256
