"""Orchestrator's tool `reconcile`: closes an experiment with prediction beside outcome.

The arithmetic is code's, the explanation the model's. A surprise of 2 or more closes only with a cited
claim that moves by at least 0.1, or a new claim. Afterwards the rules note what the outcome contradicts.
Invariant: the world model's edit is journalled before the experiment closes, both under the call's cause.
Not for: promotion, whose gate only reads that this was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agents.bounds import clip, plain
from agents.errors import ToolError
from agents.tools.desk import Desk, earlier_effect, find_experiment
from agents.tools.reckoning import Reckoning, reckon
from agents.tools.tool import Tool, ToolInput
from agents.tools.world import current_model, earlier_edit, preview, record_edit
from state.belief_changes import Change
from state.belief_rules import demote, facts_of
from state.events import ClaimChange, ExperimentReconciled
from state.model import Experiment
from state.reconciliation import answers_surprise


class Reconcile(ToolInput, frozen=True, kw_only=True):
    """Why the outcome is what it is, and what that does to the world model."""

    experiment: str
    explanation: str
    """The cause of the gap between prediction and outcome, not a repetition of the figures."""
    changes: list[Change] = []
    """Changes of the world model that follow."""


def make_reconcile(desk: Desk) -> Tool[Reconcile]:
    """Close an experiment."""

    async def run(asked: Reconcile, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        seq = earlier_effect(desk.port, "experiment.reconciled", cause)
        if seq is None:
            _refuse_if_open(desk, experiment)
            reckoning = await reckon(desk.port, experiment)
            moved = await _change_beliefs(desk, asked, experiment, reckoning, cause)
            event = _reconciled(asked, reckoning, moved, cause)
            await desk.port.record("experiment.reconciled", desk.agent, event)
        else:
            event = msgspec.convert((await desk.port.read(seq)).data, ExperimentReconciled)
        ruled = await _apply_rules(desk, f"{cause}/rules")
        return _answer(event, ruled)

    about = (
        "Close an experiment: explain the gap between prediction and outcome, and change the world model accordingly. "
        "Code computes the surprise; at 2 or more a cited claim must move by at least 0.1 or a new claim be added."
    )
    return Tool(name="reconcile", about=about, takes=Reconcile, run=run)


def _refuse_if_open(desk: Desk, experiment: Experiment) -> None:
    worker = desk.port.state.agents.get(experiment.worker)
    if worker is not None and worker.state == "working":
        raise ToolError(f"{worker.id} is still at work on {experiment.id}", "call `wait` first")
    if experiment.stage == "reconciled":
        raise ToolError(f"{experiment.id} is already reconciled", "what was learned since goes through `edit_world_model`")


async def _change_beliefs(desk: Desk, asked: Reconcile, experiment: Experiment, reckoning: Reckoning, cause: str) -> Sequence[ClaimChange]:
    if not asked.explanation.strip():
        raise ToolError("a reconciliation needs an explanation", "say what caused the outcome")
    if (earlier := await earlier_edit(desk, cause)) is not None:
        return earlier.changes
    model, moved = preview(desk, asked.changes)
    if reckoning.needs_change and not answers_surprise(experiment.claims, moved):
        cited = ", ".join(experiment.claims) or "none"
        raise ToolError(
            f"the surprise is {reckoning.surprise:.1f}: the world model must change before {experiment.id} closes",
            f"move a cited claim ({cited}) by at least 0.1 or add a claim, in `changes`",
        )
    if asked.changes:
        await record_edit(desk, model, moved, why=f"{experiment.id}: {asked.explanation}", cause=cause)
    return moved


def _reconciled(asked: Reconcile, reckoning: Reckoning, moved: Sequence[ClaimChange], cause: str) -> ExperimentReconciled:
    return ExperimentReconciled(
        experiment=asked.experiment,
        cases=reckoning.lines,
        surprise=reckoning.surprise,
        source=reckoning.source,
        explanation=clip(plain(asked.explanation), 4000),
        changes=list(moved),
        correctness=reckoning.correctness,
        performance=reckoning.performance,
        hypothesis=reckoning.hypothesis,
        cause=cause,
    )


async def _apply_rules(desk: Desk, cause: str) -> Sequence[ClaimChange]:
    """Note on each claim what contradicts it; two independent contradictions lower it below 0.5."""
    if (earlier := await earlier_edit(desk, cause)) is not None:
        return earlier.changes
    model, lowered = demote(current_model(desk), facts_of(desk.port.state))
    if lowered:
        await record_edit(desk, model, lowered, why="by rule: contradicted by reconciled experiments", cause=cause, actor="daemon")
    return lowered


def _answer(event: ExperimentReconciled, ruled: Sequence[ClaimChange]) -> dict[str, Any]:
    return {
        "experiment": event.experiment,
        "surprise": event.surprise,
        "source": event.source,
        "correctness": event.correctness,
        "performance": event.performance,
        "hypothesis": event.hypothesis,
        "cases": msgspec.to_builtins(event.cases),
        "changes": msgspec.to_builtins(event.changes),
        "by_rule": msgspec.to_builtins(list(ruled)),
    }
