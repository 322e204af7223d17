"""Orchestrator's tool `wait`: returns what happened since it last did.

Invariant: nothing is reported twice and nothing is lost: each answer carries `upto`, the record up to
which it tells, and the next one begins there. It waits on the journal, not on a clock.
Not for: operator messages, which come with the next request; it only returns early for them.
"""

from __future__ import annotations

from typing import Any

from agents.tools.desk import Desk, busy_agents
from agents.tools.tool import Tool, ToolInput
from agents.tools.views import idea_view
from state.events import Record
from state.model import Agent

TOLD = frozenset({"idea.proposed", "experiment.reported", "agent.finished", "world_model.edited", "promotion", "experiment.opened"})


class Wait(ToolInput, frozen=True, kw_only=True):
    """What to wait for."""

    until: list[str] = []
    """Agents or experiments that must have ended their work; empty: return as soon as anything happened."""


def make_wait(desk: Desk) -> Tool[Wait]:
    """Wait for subagents."""

    async def run(asked: Wait, cause: str) -> dict[str, Any]:
        since = await _told(desk)
        while True:
            seq = desk.port.state.seq
            happened = await _happened(desk, since=since, upto=seq)
            pending = [name for name in asked.until if _at_work(desk, name)]
            if _over(desk, asked, happened=happened, pending=pending):
                unknown = [name for name in asked.until if _agent(desk, name) is None]
                told = {"happened": happened, "pending": pending, "busy": busy_agents(desk.port), "upto": seq}
                return {**told, "unknown": unknown} if unknown else told
            await desk.port.changed(seq)

    about = "Wait until something happens (ideas, reports), or until the agents or experiments in `until` have ended their work."
    return Tool(name="wait", about=about, takes=Wait, run=run)


def _over(desk: Desk, asked: Wait, *, happened: list[dict[str, Any]], pending: list[str]) -> bool:
    if any(nudge.state == "queued" for nudge in desk.port.state.nudges) or not busy_agents(desk.port):
        return True
    return not pending if asked.until else bool(happened)


def _agent(desk: Desk, name: str) -> Agent | None:
    return desk.port.state.agents.get(name) or desk.port.state.agents.get(f"worker:{name}")


def _at_work(desk: Desk, name: str) -> bool:
    agent = _agent(desk, name)
    return agent is not None and agent.state == "working"


async def _told(desk: Desk) -> int:
    """Up to which record the last answer of `wait` told."""
    upto = 0
    for record in await desk.port.records(kinds=frozenset({"agent.result"})):
        if record.data["agent"] == desk.agent and record.data["name"] == "wait" and record.data["ok"]:
            upto = int(record.data["content"].get("upto", upto))
    return upto


async def _happened(desk: Desk, *, since: int, upto: int) -> list[dict[str, Any]]:
    records = await desk.port.records(after=since, kinds=TOLD)
    return [told for r in records if r.seq <= upto and r.actor != desk.agent and (told := _tell(desk, r)) is not None]


def _tell(desk: Desk, record: Record) -> dict[str, Any] | None:
    state, data = desk.port.state, record.data
    event: dict[str, Any] = {"seq": record.seq, "what": record.kind, "by": record.actor}
    if record.kind == "idea.proposed":
        return {**event, **idea_view(state.ideas[data["idea"]])}
    if record.kind == "experiment.reported":
        experiment = state.experiments[data["experiment"]]
        return {**event, "experiment": experiment.id, "conclusion": experiment.conclusion, "correctness": experiment.correctness}
    if record.kind == "agent.finished":
        return (
            {**event, "agent": data["agent"], "outcome": data["outcome"], "detail": data["detail"]} if data["outcome"] != "done" else None
        )
    if record.kind == "world_model.edited":
        return {**event, "why": data.get("why", ""), "lines": data["lines"]}
    return {**event, "experiment": data["experiment"]}
