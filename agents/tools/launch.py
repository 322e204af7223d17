"""Orchestrator's tool `launch_worker`: opens an experiment with its frozen prediction, then its worker.

Invariant: the prediction covers every case and is journalled with its hash before the worker exists, so
nothing of the experiment can have been measured. Not for: changing a prediction; there is no way to.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agents.bounds import line
from agents.briefs import worker_brief
from agents.errors import ToolError
from agents.tools.beliefs import BeliefInput, beliefs_from
from agents.tools.desk import Desk, earlier_effect, find_experiment, find_source
from agents.tools.dispatch import refuse_if_full
from agents.tools.tool import Tool, ToolInput
from state.events import AgentStarted, ExperimentOpened
from state.prediction import prediction_sha256


class LaunchWorker(ToolInput, frozen=True, kw_only=True):
    """One experiment to carry out."""

    idea: str
    """Id of the idea it carries out."""
    title: str
    prediction: list[BeliefInput]
    """Speed-up over the current champion, for every case, with what it is based on."""
    base: str = "champion"
    """`champion`, `reference`, an experiment's id or the start of a candidate's sha256."""
    claims: list[str] = []
    """Ids of the world model's claims the prediction rests on."""
    parts: list[str] = []
    """Experiments to combine, when this is a stack."""


def make_launch_worker(desk: Desk) -> Tool[LaunchWorker]:
    """Open an experiment and start its worker."""

    async def run(asked: LaunchWorker, cause: str) -> dict[str, Any]:
        opened = await _open(desk, asked, cause)
        agent = f"worker:{opened.experiment}"
        started = AgentStarted(
            agent=agent,
            role="worker",
            task=opened.title,
            context=worker_brief(desk.port, opened, workers_evaluate=desk.settings.workers_evaluate),
            experiment=opened.experiment,
            cause=cause,
        )
        await desk.port.record("agent.started", desk.agent, started)
        desk.staff.start(agent)
        return {"experiment": opened.experiment, "agent": agent, "prediction_sha256": opened.prediction_sha256}

    about = (
        "Open an experiment on an idea and put a worker on it. The prediction is frozen and hashed first; without one "
        "for every case it is refused."
    )
    return Tool(name="launch_worker", about=about, takes=LaunchWorker, run=run)


async def _open(desk: Desk, asked: LaunchWorker, cause: str) -> ExperimentOpened:
    state = desk.port.state
    seq = earlier_effect(desk.port, "experiment.opened", cause)
    if seq is not None:
        return msgspec.convert((await desk.port.read(seq)).data, ExperimentOpened)
    refuse_if_full(desk)
    if asked.idea not in state.ideas:
        raise ToolError(f"there is no idea `{asked.idea}`", f"ideas: {', '.join(state.ideas) or 'none yet; dispatch an idea agent'}")
    for part in asked.parts:
        find_experiment(desk.port, part)
    beliefs = beliefs_from(asked.prediction, cases=state.cases)
    opened = ExperimentOpened(
        experiment=f"E{len(state.experiments) + 1}",
        idea=asked.idea,
        title=line(asked.title, 120),
        base=find_source(desk.port, asked.base),
        champion=state.champion,
        prediction=beliefs,
        prediction_sha256=prediction_sha256(beliefs),
        claims=list(asked.claims),
        parts=list(asked.parts),
        cause=cause,
    )
    record = await desk.port.record("experiment.opened", desk.agent, opened)
    return msgspec.convert(record.data, ExperimentOpened)
