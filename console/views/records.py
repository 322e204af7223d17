"""Records read as the structs of `state.events`, and one line for each in the event log.

Invariant: a record of an unknown kind, or one whose data does not fit its struct, is still shown by
its raw fields; nothing here raises on what a journal may hold.
Not for: the story that plain mode tells (`console.views.story`).
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from console.text import clean, one_line
from console.views import numbers
from console.views.doc import BLANK, Line, heading, line, pair, verbatim
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


def log_line(record: Record, *, start: str) -> Line:
    """Build one line of the event log: seq, moment, actor, kind, and what it says."""
    return line(
        (f"{record.seq:>6} ", "muted"),
        (f"{numbers.offset(start, record.ts):>9}  ", "muted"),
        (f"{one_line(record.actor, limit=16):<16} ", "accent"),
        (f"{one_line(record.kind, limit=22):<22} ", "strong" if record.kind in KINDS else "warn"),
        gist(record),
    )


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


def page(record: Record) -> list[Line]:
    """Build the detail page of one record: its envelope and its data as indented JSON."""
    data = clean(json.dumps(record.data, ensure_ascii=False, indent=2), limit=200_000)
    return [
        line((f"record {record.seq}  ", "heading"), (record.kind, "strong")),
        pair("at", record.ts),
        pair("actor", record.actor),
        pair("hash", record.hash),
        pair("previous", record.prev),
        BLANK,
        heading("data"),
        *verbatim(data),
    ]
