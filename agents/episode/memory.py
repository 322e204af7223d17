"""The memory system of an episode: context in, records out.

Invariant: an episode reads its context once, at its start (it is journalled with the task), and hands
over one trajectory at its end. Not for: what a memory does with either.
"""

from __future__ import annotations

from typing import Any, Protocol


class Memory(Protocol):
    """What remembers across episodes."""

    async def context(self, problem: str) -> str:
        """What the model should know before it starts; empty for nothing."""
        ...

    async def remember(self, problem: str, trajectory: dict[str, Any]) -> None:
        """Take one finished trajectory; called again for the same one after a kill."""
        ...


class NoMemory:
    """Remembers nothing."""

    async def context(self, problem: str) -> str:
        """Nothing."""
        return ""

    async def remember(self, problem: str, trajectory: dict[str, Any]) -> None:
        """Forget it."""
