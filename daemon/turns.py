"""Who is in a turn, who is held between turns, and when a draining run has come to rest.

An actor takes a turn after `enter`: a reply is asked for, its tool calls are carried out. While the
gate is closed `enter` holds it. An actor that waits for something to happen in the run (`waiting`) is
at rest too: everything it did is journalled, and its next turn is held.
Invariant: `rested` returns only at a moment at which no actor is inside a turn.
Not for: journalling; the run's control does that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_actor: ContextVar[str | None] = ContextVar("actor", default=None)
"""The actor whose turn the current task carries out."""


class TurnGate:
    """Holds the actors of one run between turns."""

    def __init__(self, *, open_: bool = True) -> None:
        self._open = asyncio.Event()
        self._stopped = False
        self._acting: dict[str, int] = {}
        """Actor to how many waits it is inside; 0 is in a turn."""
        self._changed = asyncio.Event()
        if open_:
            self._open.set()

    @property
    def acting(self) -> list[str]:
        """Actors inside a turn and not merely waiting, and jobs under way."""
        return sorted(actor for actor, waits in self._acting.items() if not waits)

    def open(self) -> None:
        """Let everybody take their next turn."""
        self._open.set()

    def close(self) -> None:
        """Hold everybody at their next `enter`."""
        self._open.clear()

    def stop(self) -> None:
        """Turn everybody away who is held, now and later."""
        self._stopped = True
        self._open.set()

    async def enter(self, actor: str) -> None:
        """Return when `actor` may take its next turn; CancelledError once the run stops."""
        _actor.set(actor)
        self.leave(actor)
        await self._open.wait()
        if self._stopped:
            raise asyncio.CancelledError
        self._acting[actor] = 0

    def leave(self, actor: str) -> None:
        """`actor` is between turns, or has finished."""
        self._acting.pop(actor, None)
        self._changed.set()

    @contextlib.contextmanager
    def occupied(self, name: str) -> Iterator[None]:
        """While inside, the run is not at rest because of `name`, whichever actor it belongs to."""
        self._acting[name] = 0
        try:
            yield
        finally:
            self.leave(name)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While inside, the current actor waits for somebody else and counts as at rest."""
        actor = _actor.get()
        if actor is None or actor not in self._acting:
            yield
            return
        self._acting[actor] += 1
        self._changed.set()
        try:
            yield
        finally:
            if actor in self._acting:
                self._acting[actor] -= 1

    async def rested(self) -> None:
        """Return at a moment at which nobody is inside a turn."""
        while self.acting:
            self._changed.clear()
            await self._changed.wait()
