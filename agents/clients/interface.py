"""The one shape in which every model is asked and answers.

A request carries the whole conversation, a reply is whole: nothing acts on half a reply. Records here
are neutral; a client translates to its provider's wire format and back.
Invariant: a client holds no state that a later reply depends on, so any process may ask for turn n.
Not for: journalling, retries of tools, or prompts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from state.events import ToolCall, Usage


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one tool call answered, as the model gets to see it."""

    call: str
    """Id of the call it answers."""
    name: str
    ok: bool
    content: dict[str, Any]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation, `user` and `assistant` in turn."""

    role: str
    """`user` or `assistant`."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant message."""
    answers: tuple[ToolAnswer, ...] = ()
    """Of a user message: one per call of the message before."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is offered to a model."""

    name: str
    description: str
    input_schema: dict[str, Any]
    """JSON Schema of the input object."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One turn asked of a model."""

    role: str
    """`orchestrator`, `idea`, `worker` or `episode`."""
    agent: str
    """Id of the agent, in the form of a record's actor."""
    turn: int
    """Which reply of this agent is asked for, from 0."""
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """One whole reply."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    """Name of the model or file that answered."""


class ModelClient(Protocol):
    """Who answers requests."""

    async def reply(self, request: ModelRequest) -> ModelReply:
        """The whole reply; raises `agents.errors.AgentsError` when there is none to be had."""
        ...


ClientFactory = Callable[[str], ModelClient]
"""Role (`orchestrator`, `idea`, `worker`) to the client that answers for it."""
