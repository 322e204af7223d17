"""Records read as the structs of `state.events`, and as one line where no struct fits.

Invariant: a record of an unknown kind, or one whose data does not fit its struct, is still shown by
its raw fields; nothing here raises on what a journal may hold.
Not for: the story that plain mode tells (`console.views.story`) or the event log (`console.views.eventlog`).
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from console.text import one_line
from state.events import KINDS, Event, JobFinished, Record

E = TypeVar("E", bound=Event)

_TEXT_KEYS = ("text", "title", "message", "reason", "conclusion", "task", "why", "note", "name", "action", "state")


def typed(record: Record) -> Event | None:
    """Return the record's data as its struct; None for an unknown kind or a shape that does not fit."""
    kind = KINDS.get(record.kind)
    return None if kind is None else as_struct(record, kind)


def as_struct(record: Record, cls: type[E]) -> E | None:
    """Return the record's data as `cls`; None where it does not fit."""
    try:
        return msgspec.convert(record.data, cls)
    except (msgspec.ValidationError, ValueError, TypeError):
        return None


def gist(record: Record, *, limit: int = 400) -> str:
    """Say what a record holds in one line."""
    event = typed(record)
    if isinstance(event, JobFinished):
        result = event.result
        return one_line(f"{event.request} {result.status.value} {result.message}", limit=limit)
    data = record.data
    subject = next((str(data[k]) for k in ("experiment", "idea", "agent", "nudge", "request") if data.get(k)), "")
    words = next((str(data[k]) for k in _TEXT_KEYS if data.get(k)), "")
    return one_line(f"{subject} {words}" if subject or words else json.dumps(data, ensure_ascii=False)[: limit * 2], limit=limit)
