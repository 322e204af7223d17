"""What a tool is: a name, a strict input type, an effect; and how a call is executed.

The JSON schema offered to the model and the check of its input come from the same msgspec struct.
Invariant: `execute` returns an answer for every call, right or wrong; unknown tools, unknown fields and
refusals are answers the model can act on. Only bugs and cancellation leave it as exceptions.
Not for: what any tool does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from agents.bounds import bounded
from agents.clients.interface import ToolAnswer, ToolSpec
from agents.errors import ToolError
from state.events import ToolCall


class ToolInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every tool's input: unknown fields are refused."""


Input = TypeVar("Input", bound=ToolInput)


@dataclass(frozen=True, slots=True)
class Tool(Generic[Input]):
    """One tool of one agent."""

    name: str
    about: str
    """What the model reads of it."""
    takes: type[Input]
    run: Callable[[Input, str], Awaitable[dict[str, Any]]]
    """(input, cause) -> answer; a `ToolError` is a refusal."""
    ends: bool = False
    """Whether a successful call ends the agent's work."""

    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(name=self.name, description=self.about, input_schema=input_schema(self.takes))

    async def call(self, call: ToolCall, *, cause: str) -> dict[str, Any]:
        """Check the input and run the tool."""
        try:
            checked = msgspec.convert(call.input, self.takes)
        except msgspec.ValidationError as error:
            raise ToolError(f"the input does not fit `{self.name}`: {error}", "see the tool's input schema") from error
        if unknown := _unknown(call.input, msgspec.to_builtins(checked), path=""):
            raise ToolError(f"`{self.name}` has no field `{unknown}`", "see the tool's input schema")
        return await self.run(checked, cause)


Toolbox = Mapping[str, Tool[Any]]


def toolbox(*tools: Tool[Any]) -> Toolbox:
    """Tools by name."""
    return {tool.name: tool for tool in tools}


async def execute(tools: Toolbox, call: ToolCall, *, cause: str) -> ToolAnswer:
    """Run one call and return its bounded answer."""
    tool = tools.get(call.name)
    try:
        if tool is None:
            raise ToolError(f"there is no tool `{call.name}`", f"your tools are: {', '.join(tools)}")
        content = await tool.call(call, cause=cause)
    except ToolError as error:
        refusal = {"error": error.message, **({"hint": error.hint} if error.hint else {})}
        return ToolAnswer(call=call.id, name=call.name, ok=False, content=bounded(refusal))
    return ToolAnswer(call=call.id, name=call.name, ok=True, content=bounded(content))


def input_schema(takes: type[ToolInput]) -> dict[str, Any]:
    """JSON Schema of an input type: one object, definitions beside it, unknown fields refused."""
    (schema,), definitions = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    top = dict(definitions.pop(takes.__name__, schema))
    if definitions:
        top["$defs"] = definitions
    top.pop("title", None)
    return top


def _unknown(given: Any, known: Any, *, path: str) -> str:
    """Path of the first field that the input type does not have, at any depth."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            if name not in known:
                return f"{path}{name}"
            if found := _unknown(value, known[name], path=f"{path}{name}."):
                return found
    if isinstance(given, list) and isinstance(known, list):
        for i, (item, other) in enumerate(zip(given, known, strict=False)):
            if found := _unknown(item, other, path=f"{path}{i}."):
                return found
    return ""
