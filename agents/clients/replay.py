"""The `replay` client: answers with the replies of a journal, and stops where the run goes another way.

Figures measured anew always differ a little; what must not differ is what the recorded replies were
built on: which calls succeeded and what they decided. `DECISIVE` lists those fields.
Invariant: a recorded reply is only given while every decisive field so far equals the journal's; the
first that does not is a `Diverged` naming agent, reply, call and both values.
Not for: showing a recorded run on the screens; that is `ratchet replay`, which asks no model.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from agents.clients.interface import ModelReply, ModelRequest, ToolAnswer
from agents.errors import BadSession, Diverged, SessionEnded
from state.errors import StateError
from state.events import AgentReply, AgentResult, Record
from state.follower import Follower

DECISIVE = (
    *("status", "correct", "decision", "passed", "promoted"),
    *("correctness", "performance", "needs_claim_change", "retention"),
    *("experiment", "agent", "idea"),
)
"""Fields at the top of an answer that later replies were built on."""


class ReplayClient:
    """Answers from recorded replies."""

    def __init__(self, records: Iterable[Record], *, name: str) -> None:
        self._name = name
        self._replies: dict[tuple[str, int], AgentReply] = {}
        self._results: dict[tuple[str, str], AgentResult] = {}
        for record in records:
            if record.kind == "agent.reply":
                reply = msgspec.convert(record.data, AgentReply)
                self._replies[reply.agent, reply.turn] = reply
            elif record.kind == "agent.result":
                result = msgspec.convert(record.data, AgentResult)
                self._results[result.agent, result.call] = result
        if not self._replies:
            raise BadSession(f"{name}: holds no model replies", "name the attempts.jsonl of a run")

    @classmethod
    def open(cls, path: Path) -> ReplayClient:
        """Read a journal and check its chain; a torn last line is left out."""
        try:
            with Follower(path) as source:
                source.poll()
                return cls(source.walk(), name=path.name)
        except StateError as error:
            raise BadSession(f"{path} cannot be replayed: {error.message}", error.hint) from error
        except (msgspec.ValidationError, KeyError) as error:
            raise BadSession(f"{path}: a reply in it cannot be read ({error})") from error

    async def reply(self, request: ModelRequest) -> ModelReply:
        """The recorded reply of the same agent and turn."""
        for message in request.messages:
            for answer in message.answers:
                self._compare(request, answer)
        recorded = self._replies.get((request.agent, request.turn))
        if recorded is None:
            raise SessionEnded(f"{self._name} has no reply {request.turn} of {request.agent}: the recorded run ended there")
        return ModelReply(text=recorded.text, calls=tuple(recorded.calls), usage=recorded.usage, model=f"replay:{recorded.model}")

    def _compare(self, request: ModelRequest, answer: ToolAnswer) -> None:
        recorded = self._results.get((request.agent, answer.call))
        if recorded is None:
            return
        then = {"ok": recorded.ok, **{k: recorded.content[k] for k in DECISIVE if k in recorded.content}}
        now = {"ok": answer.ok, **{k: answer.content[k] for k in DECISIVE if k in answer.content}}
        if then == now:
            return
        field = next(k for k in ("ok", *DECISIVE) if then.get(k) != now.get(k))
        raise Diverged(
            f"replay of {self._name} diverged at reply {request.turn} of {request.agent}: "
            f"`{answer.name}` ({answer.call}) answered {field} {now.get(field)!r} where the journal has {then.get(field)!r}",
            "the recorded replies do not fit this outcome; measured decisions may differ on another or a noisier machine",
        )
