"""Lines of toned text: the one form that screens paint and plain mode prints.

Invariant: a `Line` holds cleaned text only, one terminal line, and its tone never carries meaning
that its words or glyphs do not.
Not for: choosing what to say (the other modules of this package).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from console.text import clean

Tone = Literal["plain", "strong", "muted", "good", "bad", "warn", "accent", "heading"]


class Span(NamedTuple):
    """A piece of one line."""

    text: str
    tone: Tone = "plain"


Line = tuple[Span, ...]
Part = str | tuple[str, Tone] | Span

BLANK: Line = ()


def line(*parts: Part) -> Line:
    """Build one line; every part is cleaned and flattened."""
    spans = (Span(p) if isinstance(p, str) else Span(*p) for p in parts)
    return tuple(Span(_flat(s.text), s.tone) for s in spans if s.text)


def heading(text: str) -> Line:
    """Build the title line of a section."""
    return line((text, "heading"))


def pair(label: str, value: Part, *, width: int = 14) -> Line:
    """Build `label  value` with the label muted and padded."""
    return line((f"{label:<{width}} ", "muted"), value)


def text_of(row: Line) -> str:
    """Return the characters of a line."""
    return "".join(span.text for span in row)


def plain(rows: Iterable[Line]) -> str:
    """Return lines as plain text, trailing blanks cut."""
    return "\n".join(text_of(row).rstrip() for row in rows)


def wrapped(text: str, *, width: int, indent: str = "", tone: Tone = "plain") -> list[Line]:
    """Wrap prose to `width` cells; blank lines and leading blanks of the text stay."""
    rows: list[Line] = []
    for source in clean(text).split("\n"):
        lead = indent + source[: len(source) - len(source.lstrip(" "))]
        pieces = textwrap.wrap(source.strip(), max(width, 20), initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False)
        rows.extend(line((piece, tone)) for piece in pieces or [""])
    return rows


def verbatim(text: str, *, limit: int = 5_000) -> list[Line]:
    """Return text line by line, not wrapped: source code and logs."""
    rows = clean(text).rstrip("\n").split("\n")
    kept = [line(row) for row in rows[:limit]]
    return kept if len(rows) <= limit else [*kept, line((f"… {len(rows) - limit} more lines", "muted"))]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Cut or pad `text` to exactly `width` cells, with an ellipsis where it was cut."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(width - 1, 0)) + ("…" if width > 0 else "")
    return " " * (width - size) + text if right else text + " " * (width - size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    width: int
    """Cells it takes when there is room."""
    right: bool = False
    grows: bool = False
    """Takes what is left of the line; at most one column of a table."""
    rank: int = 0
    """Columns of the highest rank go first when the line is too narrow."""


def header(columns: Sequence[Column], *, width: int) -> Line:
    """Build the title row of a table."""
    return row_of([Span(c.title, "muted") for c in columns], columns, width=width)


def row_of(cells: Sequence[Span], columns: Sequence[Column], *, width: int) -> Line:
    """Lay one row out in `width` cells; columns are separated by one blank."""
    spans: list[Span] = []
    for index, size in _sizes(columns, width):
        column = columns[index]
        spans.append(Span(fit(_flat(cells[index].text), size, right=column.right), cells[index].tone))
        spans.append(Span(" "))
    return tuple(spans[:-1])


def _sizes(columns: Sequence[Column], width: int) -> list[tuple[int, int]]:
    kept = list(range(len(columns)))
    while len(kept) > 1 and sum(columns[i].width + 1 for i in kept) - 1 > width and max(columns[i].rank for i in kept) > 0:
        kept.remove(max(kept, key=lambda i: (columns[i].rank, i)))
    spare = width - (sum(columns[i].width + 1 for i in kept) - 1)
    return [(i, max(columns[i].width + (spare if columns[i].grows else 0), 1)) for i in kept]


def _flat(text: str) -> str:
    return text if text.isascii() and text.isprintable() else clean(text.replace("\n", " "), limit=4_000)
