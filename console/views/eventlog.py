"""The event log: one line for every record, and the page of one.

Invariant: no record is left out; what the story does not tell is shown by its raw fields.
Not for: the story itself (`console.views.story`).
"""

from __future__ import annotations

import json

from console.text import clean, one_line
from console.views import numbers, story
from console.views.doc import BLANK, Line, heading, line, pair, verbatim
from console.views.records import gist
from state.events import KINDS, Record


def log_line(record: Record, *, start: str) -> Line:
    """Build one line of the event log: seq, moment, actor, kind, and what it says."""
    return line(
        (f"{record.seq:>5} ", "muted"),
        (f"{numbers.offset(start, record.ts):>8}  ", "muted"),
        (f"{one_line(record.actor, limit=13):<13} ", "accent"),
        (f"{one_line(record.kind, limit=21):<21} ", "strong" if record.kind in KINDS else "warn"),
        *(story.words(record) or [gist(record)]),
    )


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
