"""Orchestrator's tool `dispatch_idea`: puts an idea agent to work.

Invariant: at most `n` subagents are at work; the agent's whole first context is journalled before it
starts. Not for: what the agent may do (`agents.roles`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agents.bounds import clip, line, plain
from agents.briefs import idea_brief
from agents.errors import ToolError
from agents.tools.desk import Desk, busy_agents, earlier_effect
from agents.tools.tool import Tool, ToolInput
from state.events import AgentStarted


class DispatchIdea(ToolInput, frozen=True, kw_only=True):
    """What to look for."""

    category: Literal["engineering", "algorithmic", "search"]
    focus: str = ""
    """One problem to look at; empty for a generic search."""


def make_dispatch_idea(desk: Desk) -> Tool[DispatchIdea]:
    """Start an idea agent."""

    async def run(asked: DispatchIdea, cause: str) -> dict[str, Any]:
        if earlier_effect(desk.port, "agent.started", cause) is None:
            refuse_if_full(desk)
        started = AgentStarted(
            agent=f"idea:{1 + sum(a.role == 'idea' for a in desk.port.state.agents.values())}",
            role="idea",
            task=line(f"{asked.category}: {asked.focus or 'whatever helps'}"),
            context=idea_brief(desk.port, category=asked.category, focus=clip(plain(asked.focus), 2000)),
            cause=cause,
        )
        record = await desk.port.record("agent.started", desk.agent, started)
        agent = msgspec.convert(record.data, AgentStarted).agent
        desk.staff.start(agent)
        return {"agent": agent, "note": "its ideas arrive through `wait`"}

    about = "Put a fresh idea agent to work. Generic without a focus; `engineering`, `algorithmic` or `search`."
    return Tool(name="dispatch_idea", about=about, takes=DispatchIdea, run=run)


def refuse_if_full(desk: Desk) -> None:
    """Refuse when `n` subagents are at work."""
    busy = busy_agents(desk.port)
    if len(busy) >= desk.settings.n:
        raise ToolError(f"{len(busy)} of {desk.settings.n} agents are at work: {', '.join(busy)}", "call `wait`, then try again")
