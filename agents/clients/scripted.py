"""The `scripted` client: answers from a session file, the embedded default and the tests.

Invariant: reply n of an agent depends only on (session, agent, n, earlier answers in the request).
Not for: outcomes. Whatever is measured comes from the evaluator; a session only reacts to it.
"""

from __future__ import annotations

from agents.clients.interface import ModelReply, ModelRequest
from agents.clients.playing import reply_at
from agents.clients.session import Session
from agents.errors import SessionEnded
from state.events import Usage


class ScriptedClient:
    """Plays one session for every agent it names."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def reply(self, request: ModelRequest) -> ModelReply:
        """The scripted reply; `SessionEnded` where the session holds none."""
        steps = self.session.agents.get(request.agent)
        if steps is None:
            known = ", ".join(self.session.agents)
            raise SessionEnded(f"session `{self.session.name}` has no replies for {request.agent}", f"it speaks for: {known}")
        answers = {a.call: {**a.content, "ok": a.ok} for m in request.messages for a in m.answers}
        reply = reply_at(steps, turn=request.turn, answers=answers)
        if reply is None:
            raise SessionEnded(f"session `{self.session.name}` ends before reply {request.turn} of {request.agent}")
        usage = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)
        return ModelReply(text=reply.text, calls=reply.calls, usage=usage, model=f"scripted:{self.session.name}")
