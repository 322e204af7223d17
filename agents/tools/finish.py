"""The tool `finish`, which ends an idea agent's work or the whole search.

Invariant: a search ends only when no subagent is at work and every experiment is reconciled.
Not for: stopping a run early; that is the operator's.
"""

from __future__ import annotations

from typing import Any

from agents.bounds import clip, plain
from agents.errors import ToolError
from agents.tools.desk import Desk, busy_agents
from agents.tools.tool import Tool, ToolInput


class Finish(ToolInput, frozen=True, kw_only=True):
    """The end."""

    summary: str


def make_finish_search(desk: Desk) -> Tool[Finish]:
    """End the search."""

    async def run(asked: Finish, cause: str) -> dict[str, Any]:
        state = desk.port.state
        if busy := busy_agents(desk.port):
            raise ToolError(f"still at work: {', '.join(busy)}", "call `wait` first")
        if loose := [e.id for e in state.experiments.values() if e.stage != "reconciled"]:
            raise ToolError(f"not reconciled: {', '.join(loose)}", "reconcile each experiment, also the failed ones")
        return {"summary": clip(plain(asked.summary), 4000), "promotions": len(state.promotions), "bank": list(state.bank)}

    about = "End the search with a summary. Refused while an agent works or an experiment is unreconciled."
    return Tool(name="finish", about=about, takes=Finish, run=run, ends=True)


def make_finish_ideas(desk: Desk) -> Tool[Finish]:
    """End an idea agent's work."""

    async def run(asked: Finish, cause: str) -> dict[str, Any]:
        ideas = [idea.id for idea in desk.port.state.ideas.values() if idea.actor == desk.agent]
        return {"summary": clip(plain(asked.summary), 4000), "ideas": ideas}

    about = "End your work once your ideas are proposed, or say why there is none."
    return Tool(name="finish", about=about, takes=Finish, run=run, ends=True)
