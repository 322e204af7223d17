"""One conversation, folded from the journal.

`History.add` takes the agent's records in order, live and after a restart alike, so the message list a
model gets is the same whichever process asks. Operator messages to the orchestrator stand where their
`nudge.delivered` record stands.
Invariant: derived from records alone. Not for: asking a model or running a tool (`conversation`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agents.clients.interface import Message, ToolAnswer
from state.events import (
    AgentFinished,
    AgentReply,
    AgentResult,
    AgentStarted,
    NudgeAcknowledged,
    NudgeDelivered,
    NudgeQueued,
    Record,
    ToolCall,
)

KINDS = frozenset(
    {"agent.started", "agent.reply", "agent.result", "agent.finished", "nudge.queued", "nudge.delivered", "nudge.acknowledged"}
)

NO_CALL = "You called no tool, so nothing happened. Answer with at least one tool call; the last one of your work is the one that ends it."


class History:
    """What one agent said, called and was answered, and what is still open."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.turn = 0
        """Number of the next reply."""
        self.pending: list[ToolCall] = []
        """Calls of the last reply without an answer, in order."""
        self.answered: list[ToolAnswer] = []
        """Answers to the last reply's calls."""
        self.call_ids: set[str] = set()
        self.silent = 0
        """Replies in a row without a call."""
        self.to_acknowledge: list[str] = []
        """Nudges that were part of a request whose reply is journalled."""
        self.finished: AgentFinished | None = None
        self._messages: list[Message] = []
        self._words: list[str] = []
        self._nudges: dict[str, str] = {}
        self._delivered: list[str] = []

    @classmethod
    def of(cls, agent: str, records: Iterable[Record]) -> History:
        """Fold all of `records`; those of other agents are left out."""
        history = cls(agent)
        for record in records:
            history.add(record)
        return history

    def add(self, record: Record) -> None:
        """Fold one record in."""
        if record.kind.startswith("nudge."):
            if self.agent == "orchestrator":
                self._nudge(record)
        elif record.kind in KINDS and record.data.get("agent") == self.agent:
            self._own(record)

    def messages(self) -> tuple[Message, ...]:
        """The conversation so far; ends with a user message when the next reply may be asked for."""
        if not self._messages and not self._words:
            return ()
        if self.pending:
            return tuple(self._messages)
        last = Message(role="user", text="\n\n".join(self._words), answers=tuple(self.answered))
        return (*self._messages, last)

    def _own(self, record: Record) -> None:
        if record.kind == "agent.started":
            self._words = [msgspec.convert(record.data, AgentStarted).context]
        elif record.kind == "agent.reply":
            self._reply(msgspec.convert(record.data, AgentReply))
        elif record.kind == "agent.result":
            self._result(msgspec.convert(record.data, AgentResult))
        else:
            self.finished = msgspec.convert(record.data, AgentFinished)

    def _reply(self, reply: AgentReply) -> None:
        self._messages = [*self.messages(), Message(role="assistant", text=reply.text, calls=tuple(reply.calls))]
        self.turn = reply.turn + 1
        self.pending = list(reply.calls)
        self.answered = []
        self.call_ids.update(call.id for call in reply.calls)
        self.silent = 0 if reply.calls else self.silent + 1
        self._words = [] if reply.calls else [NO_CALL]
        self.to_acknowledge += self._delivered
        self._delivered = []

    def _result(self, result: AgentResult) -> None:
        self.pending = [call for call in self.pending if call.id != result.call]
        self.answered.append(ToolAnswer(call=result.call, name=result.name, ok=result.ok, content=result.content))

    def _nudge(self, record: Record) -> None:
        if record.kind == "nudge.queued":
            queued = msgspec.convert(record.data, NudgeQueued)
            self._nudges[queued.nudge] = queued.text
        elif record.kind == "nudge.delivered":
            nudge = msgspec.convert(record.data, NudgeDelivered).nudge
            self._delivered.append(nudge)
            self._words.append(f"Message from the operator ({nudge}):\n{self._nudges.get(nudge, '')}")
        else:
            done = msgspec.convert(record.data, NudgeAcknowledged).nudge
            self.to_acknowledge = [nudge for nudge in self.to_acknowledge if nudge != done]
