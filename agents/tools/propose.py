"""Idea agent's tool `propose`.

Invariant: an idea carries a belief for every case and its id is `I<agent>.<n>`, the same whenever the
call is executed again. Not for: starting the work (`tools.launch`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agents.bounds import clip, line, plain
from agents.errors import ToolError
from agents.tools.beliefs import BeliefInput, beliefs_from
from agents.tools.desk import Desk, earlier_effect
from agents.tools.tool import Tool, ToolInput
from state.events import IdeaProposed

MOST = 5
"""Ideas one agent may propose."""


class Propose(ToolInput, frozen=True, kw_only=True):
    """One idea."""

    title: str
    category: Literal["engineering", "algorithmic", "search"]
    rationale: str
    """The mechanism: why it should be faster, and what would show that it is not."""
    beliefs: list[BeliefInput]
    """Expected speed-up over the current champion, for every case."""
    claims: list[str] = []
    """Ids of the world model's claims it rests on."""


def make_propose(desk: Desk) -> Tool[Propose]:
    """Journal one idea."""

    async def run(asked: Propose, cause: str) -> dict[str, Any]:
        mine = [idea for idea in desk.port.state.ideas.values() if idea.actor == desk.agent]
        if len(mine) >= MOST and earlier_effect(desk.port, "idea.proposed", cause) is None:
            raise ToolError(f"{MOST} ideas are enough for one agent", "call `finish`")
        idea = IdeaProposed(
            idea=f"I{desk.agent.partition(':')[2]}.{len(mine) + 1}",
            title=line(asked.title, 120),
            category=asked.category,
            rationale=clip(plain(asked.rationale), 4000),
            beliefs=beliefs_from(asked.beliefs, cases=desk.port.state.cases),
            claims=list(asked.claims),
            cause=cause,
        )
        record = await desk.port.record("idea.proposed", desk.agent, idea)
        return {"idea": msgspec.convert(record.data, IdeaProposed).idea}

    about = "Propose one idea: mechanism, expected speed-up per case as an interval, and what that rests on."
    return Tool(name="propose", about=about, takes=Propose, run=run)
