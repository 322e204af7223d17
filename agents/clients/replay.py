"""The `replay` client: answers with the replies of a journal, and stops where the run goes another way.

Figures measured anew always differ a little; what must not differ is what the recorded replies were
built on: which calls succeeded and what they decided. `DECISIVE` lists those fields.
Invariant: a recorded reply is only given while every decisive field so far equals the journal's; the
first that does not is a `Diverged` naming agent, reply, call and both values.
Not for: showing a recorded run on the screens; that is `ratchet replay`, which asks no model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agents.clients.interface import ModelReply, ModelRequest, ToolAnswer
from agents.errors import BadSession, Diverged, SessionEnded
from state.events import AgentReply, AgentResult

DECISIVE = (
    *("status", "correct", "decision", "passed", "promoted"),
    *("correctness", "performance", "needs_claim_change", "retention"),
    *("experiment", "agent", "idea"),
)
"""Fields at the top of an answer that later replies were built on."""


class ReplayClient:
    """Answers from recorded replies."""

    def __init__(self, lines: Iterable[dict[str, Any]], *, name: str) -> None:
        self._name = name
        self._replies: dict[tuple[str, int], AgentReply] = {}
        self._results: dict[tuple[str, str], AgentResult] = {}
        for line in lines:
            if line.get("kind") == "agent.reply":
                reply = msgspec.convert(line["data"], AgentReply)
                self._replies[reply.agent, reply.turn] = reply
            elif line.get("kind") == "agent.result":
                result = msgspec.convert(line["data"], AgentResult)
                self._results[result.agent, result.call] = result
        if not self._replies:
            raise BadSession(f"{name}: holds no model replies", "name the attempts.jsonl of a run")

    @classmethod
    def open(cls, path: Path) -> ReplayClient:
        """Read a journal; a torn last line is left out."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadSession(f"{path}: cannot be read as a journal ({error})") from error
        try:
            return cls(_lines(text, path), name=path.name)
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


def _lines(text: str, path: Path) -> Iterator[dict[str, Any]]:
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return
            raise BadSession(f"{path}: line {number} is not JSON ({error.msg})") from error
        if not isinstance(value, dict):
            raise BadSession(f"{path}: line {number} is not a record")
        yield value
