"""A search for tests of the daemon: fixed experiments through every effect of a run's port.

Like a real search it may be taken up anywhere: every effect has a cause, every turn a checkpoint.
"""

from __future__ import annotations

import asyncio
import hashlib
import os

from agents.ports import RunPort
from evaluator.records import Job, JobKind, Source
from state.events import (
    AgentFinished,
    AgentReply,
    AgentStarted,
    Belief,
    CandidateSubmitted,
    ExperimentOpened,
    ExperimentReconciled,
    ExperimentReported,
    Usage,
    WorldModelEdited,
)
from state.prediction import prediction_sha256

SPEEDS = tuple(float(x) for x in os.environ.get("STAND_IN_SPEEDS", "1.5 1.2 2.0").split())


def text_of(number: int, speed: float) -> str:
    return f"# double: speed={speed} sleep={os.environ.get('STAND_IN_SLEEP', '0')}\n# candidate {number}\n"


async def search(port: RunPort) -> None:
    """One worker after another, while an orchestrator waits for them."""
    await started(port, "orchestrator", "orchestrator")
    async with asyncio.TaskGroup() as group:
        group.create_task(workers(port))
        group.create_task(orchestrator(port))


async def orchestrator(port: RunPort) -> None:
    await turn(port, "orchestrator", 0)
    while any(
        f"worker:E{n + 1}" not in port.state.agents or port.state.agents[f"worker:E{n + 1}"].state == "working" for n in range(len(SPEEDS))
    ):
        await port.changed(port.state.seq)
    await turn(port, "orchestrator", 1)
    text = f"# World model\n{len(port.state.promotions)} promotions\n"
    edit = WorldModelEdited(sha256=hashlib.sha256(text.encode()).hexdigest(), lines=2, text=text, cause="orchestrator/edit")
    await port.record("world_model.edited", "orchestrator", edit)
    await finished(port, "orchestrator")


async def workers(port: RunPort) -> None:
    for number, speed in enumerate(SPEEDS):
        await worker(port, f"E{number + 1}", text_of(number, speed))


async def worker(port: RunPort, experiment: str, text: str) -> None:
    actor = f"worker:{experiment}"
    opened = port.state.effects.get(f"experiment.opened {actor}/open")
    if opened is None:
        beliefs = [Belief(case=port.state.cases[0], low=1.1, high=1.6, basis="a guess")]
        frozen = ExperimentOpened(
            experiment=experiment, idea="", title=experiment, base=None, champion=port.state.champion,
            prediction=beliefs, prediction_sha256=prediction_sha256(beliefs), cause=f"{actor}/open",
        )  # fmt: skip
        await port.record("experiment.opened", "orchestrator", frozen)
    await started(port, actor, "worker", experiment)
    await turn(port, actor, 0)
    sha256 = await port.store(text)
    await port.record(
        "candidate.submitted", actor, CandidateSubmitted(experiment=experiment, sha256=sha256, bytes=len(text), cause=f"{actor}/submit")
    )
    source = Source(sha256=sha256, text=text)
    await judged(port, JobKind.EVALUATE, source, experiment)
    await turn(port, actor, 1)
    await judged(port, JobKind.ROBUSTNESS, source, experiment)
    await judged(port, JobKind.AB, source, experiment)
    report = ExperimentReported(experiment=experiment, conclusion="done", report="done", final=sha256, cause=f"{actor}/report")
    await port.record("experiment.reported", actor, report)
    reconciled = ExperimentReconciled(
        experiment=experiment, cases=[], surprise=None, source="ab", explanation="as said", correctness="correct",
        performance=port.state.experiments[experiment].performance, hypothesis="confirmed", cause=f"{actor}/reconcile",
    )  # fmt: skip
    await port.record("experiment.reconciled", actor, reconciled)
    await turn(port, actor, 2)
    await port.promote(experiment, cause=f"{actor}/promote")
    await finished(port, actor)


async def judged(port: RunPort, kind: JobKind, source: Source, experiment: str) -> None:
    champion = None
    if kind is JobKind.AB and port.state.champion:
        champion = Source(sha256=port.state.champion, text=port.candidate(port.state.champion))
    job = Job(id="", kind=kind, problem="", candidate=source, champion=champion)
    await port.evaluate(job, owner=experiment, experiment=experiment, purpose=kind.value, cause=f"worker:{experiment}/{kind.value}")


async def started(port: RunPort, actor: str, role: str, experiment: str | None = None) -> None:
    await port.record(
        "agent.started", "daemon", AgentStarted(agent=actor, role=role, task="test", experiment=experiment, cause=f"{actor}/start")
    )


async def finished(port: RunPort, actor: str) -> None:
    if port.state.agents[actor].state == "working":
        await port.record("agent.finished", actor, AgentFinished(agent=actor, outcome="done"))


async def turn(port: RunPort, actor: str, number: int) -> None:
    if port.state.agents[actor].turns > number:
        return
    await port.checkpoint(actor)
    await port.record(
        "agent.reply",
        actor,
        AgentReply(agent=actor, turn=number, text=f"turn {number}", usage=Usage(input_tokens=1, output_tokens=1, cost_usd=0.0)),
    )
