"""Events inside an episode: compaction, model swap, crash; and what became of them.

An event applies before reply `1 + at_step mod 4` (replies count from 0), so the four gaps between five
replies are all there is. Which events applied follows from how many replies there were.
Invariant: pure functions of the schedule and the number of replies; nothing is remembered elsewhere.
Not for: carrying events out (`episode.loop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

REPLIES = 5


class LifecycleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduled event."""

    type: Literal["compaction", "model_swap", "crash"]
    at_step: int
    to: str = ""
    """Of a model swap: the model that gives that one reply."""

    @property
    def before_reply(self) -> int:
        """The reply it applies before, 1 to 4."""
        return 1 + self.at_step % (REPLIES - 1)


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the schedule."""

    events: list[LifecycleEvent]
    """All that were scheduled."""
    applied: list[str]
    """Types of those whose reply was asked for; one after an early SUBMIT is not among them."""
    applied_detail: list[dict[str, str | int]]
    survived: bool
    """Whether the episode finished without an error of the infrastructure or the model's service."""


def due(events: Sequence[LifecycleEvent], *, reply: int) -> list[LifecycleEvent]:
    """Events that apply before this reply, in the order of the schedule."""
    return [event for event in events if event.before_reply == reply]


def boundary(events: Sequence[LifecycleEvent], *, replies: int, survived: bool) -> Boundary:
    """What became of `events` in an episode of this many replies."""
    applied = sorted((e for e in events if e.before_reply < replies), key=lambda e: e.before_reply)
    detail: list[dict[str, str | int]] = [
        {"type": e.type, "before_reply": e.before_reply, **({"to": e.to} if e.to else {})} for e in applied
    ]
    return Boundary(events=list(events), applied=[e.type for e in applied], applied_detail=detail, survived=survived)
