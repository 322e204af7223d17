"""The protocol of a source of records.

Invariant: `follow` yields every record after the one it was asked for, in order, exactly once; a
source that had to start over sends a whole state instead, and says when its link is down.
Not for: gauges of a replay (there are none).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from state.events import Record
from state.model import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Whether the source still hears from the other side."""

    connected: bool
    detail: str = ""
    """Why not, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What arrived: records to fold, or a state that replaces the one held, or news of the link."""

    records: tuple[Record, ...] = ()
    state: RunState | None = None
    link: Link | None = None


class Source(Protocol):
    """One run's records."""

    @property
    def live(self) -> bool:
        """Whether a daemon is behind it that can be asked for things."""

    @property
    def place(self) -> str:
        """Where the records come from, in words."""

    async def open(self) -> RunState:
        """Return the state as of now."""

    def follow(self, after: int) -> AsyncIterator[Batch]:
        """Yield what comes after record `after`, for as long as somebody iterates."""

    async def page(self, after: int, limit: int) -> list[Record]:
        """Return at most `limit` records after `after`, at once."""

    async def candidate(self, sha256: str) -> str | None:
        """Return the text of a candidate, or None where it is not kept here."""

    def gauges(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield latest values of running jobs, queue and device; nothing in a replay."""

    async def close(self) -> None:
        """Let go of files and sockets."""


class Control(Protocol):
    """What an operator may ask of a live run; every answer is the seq of the effect."""

    async def pause(self) -> int:
        """Ask for a pause after what is in flight."""

    async def resume(self) -> int:
        """Ask to go on."""

    async def stop(self) -> int:
        """Ask the run to end."""

    async def nudge(self, text: str) -> int:
        """Queue a message to the orchestrator."""


async def read(source: Source, seq: int) -> Record | None:
    """Return one record, or None where the source does not have it."""
    found = await source.page(seq - 1, 1) if seq > 0 else []
    return found[0] if found and found[0].seq == seq else None


async def order(control: Control, what: str, text: str = "") -> int:
    """Ask for `pause`, `resume`, `stop` or `nudge` and return the seq of the effect."""
    if what == "nudge":
        return await control.nudge(text)
    orders = {"pause": control.pause, "resume": control.resume, "stop": control.stop}
    return await orders[what]()
