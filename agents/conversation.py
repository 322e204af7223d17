"""One agent's conversation, driven from its journal.

A reply is journalled before anything acts on it; each of its calls is executed under the cause
`<agent>/<call id>` and its answer journalled. After a kill `Conversation.resume` rebuilds the messages
from the records, and calls without an answer are executed again: their effects are idempotent by cause.
Invariant: the conversation in memory is always what the journal would rebuild.
Not for: deciding what an agent may do; its role brings system prompt, tools and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.bounds import REPLY_CHARS, clip, line
from agents.clients.interface import ModelClient, ModelReply, ModelRequest
from agents.errors import AgentGaveUp
from agents.history import KINDS, History
from agents.ports import RunPort
from agents.tools.tool import Toolbox, execute
from state.events import AgentFinished, AgentReply, AgentResult, Event, NudgeAcknowledged, NudgeDelivered, Record, ToolCall

MAX_CALLS = 16
"""Calls of one reply that are executed; a reply with more is cut."""
MAX_SILENT = 3
"""Replies in a row without a call before an agent has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What makes an agent what it is."""

    name: str
    system: str
    tools: Toolbox
    max_turns: int


class Conversation:
    """The loop of one agent."""

    def __init__(self, port: RunPort, client: ModelClient, role: Role, *, history: History) -> None:
        self._port = port
        self._client = client
        self._role = role
        self._history = history

    @classmethod
    async def resume(cls, port: RunPort, client: ModelClient, role: Role, *, agent: str) -> Conversation:
        """Take the conversation of an agent up from its records (its `agent.started` at least)."""
        history = History.of(agent, await port.records(kinds=KINDS))
        return cls(port, client, role, history=history)

    async def run(self) -> AgentFinished:
        """Go on until a tool ends the work; journals and returns how it ended."""
        history = self._history
        while history.finished is None:
            await self._answer_calls()
            if ending := self._ended_by():
                await self._record("agent.finished", AgentFinished(agent=history.agent, outcome="done", detail=ending))
                break
            await self._port.checkpoint(history.agent)
            await self._deliver_nudges()
            await self._next_reply()
        assert history.finished is not None
        return history.finished

    async def _answer_calls(self) -> None:
        agent = self._history.agent
        for call in tuple(self._history.pending):
            answer = await execute(self._role.tools, call, cause=f"{agent}/{call.id}")
            result = AgentResult(agent=agent, call=call.id, name=line(call.name, 80), ok=answer.ok, content=answer.content)
            await self._record("agent.result", result)

    def _ended_by(self) -> str | None:
        """Name of the tool whose success ended the work."""
        tools = self._role.tools
        return next((a.name for a in self._history.answered if a.ok and a.name in tools and tools[a.name].ends), None)

    async def _next_reply(self) -> None:
        history = self._history
        self._check_limits()
        request = ModelRequest(
            role=self._role.name,
            agent=history.agent,
            turn=history.turn,
            system=self._role.system,
            messages=history.messages(),
            tools=tuple(tool.spec() for tool in self._role.tools.values()),
        )
        reply = await self._client.reply(request)
        await self._record("agent.reply", self._journalled(reply))
        await self._acknowledge_nudges()

    def _check_limits(self) -> None:
        history, role = self._history, self._role
        if history.turn >= role.max_turns:
            raise AgentGaveUp(f"{history.agent} used all of its {role.max_turns} replies")
        if history.silent >= MAX_SILENT:
            raise AgentGaveUp(f"{history.agent} answered {MAX_SILENT} times in a row without calling a tool")

    def _journalled(self, reply: ModelReply) -> AgentReply:
        calls = _distinct(reply.calls[:MAX_CALLS], taken=self._history.call_ids, turn=self._history.turn)
        text = clip(reply.text, REPLY_CHARS)
        return AgentReply(agent=self._history.agent, turn=self._history.turn, text=text, calls=calls, usage=reply.usage, model=reply.model)

    async def _deliver_nudges(self) -> None:
        await self._acknowledge_nudges()
        if self._history.agent != "orchestrator":
            return
        for nudge in [n.id for n in self._port.state.nudges if n.state == "queued"]:
            await self._catch_up(nudge)
            await self._record("nudge.delivered", NudgeDelivered(nudge=nudge))

    async def _catch_up(self, nudge: str) -> None:
        for record in await self._port.records(kinds=frozenset({"nudge.queued"})):
            if record.data.get("nudge") == nudge:
                self._history.add(record)

    async def _acknowledge_nudges(self) -> None:
        for nudge in tuple(self._history.to_acknowledge):
            await self._record("nudge.acknowledged", NudgeAcknowledged(nudge=nudge))

    async def _record(self, kind: str, data: Event) -> Record:
        record = await self._port.record(kind, self._history.agent, data)
        self._history.add(record)
        return record


def _distinct(calls: Sequence[ToolCall], *, taken: set[str], turn: int) -> list[ToolCall]:
    """Calls whose ids no earlier call of this agent has: an id is half of a cause."""
    seen = set(taken)
    distinct = []
    for index, call in enumerate(calls):
        call_id = call.id if call.id and call.id not in seen else f"{call.id or 'call'}~{turn}.{index}"
        seen.add(call_id)
        distinct.append(ToolCall(id=call_id, name=call.name, input=call.input))
    return distinct
