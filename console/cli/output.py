"""What the command line writes, and to which stream.

Invariant: with `--json` standard output carries exactly one JSON object (errors too) and everything
else goes to standard error; colour only where a terminal reads it and NO_COLOR is not set.
Not for: what is said (`console.views`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from console.cli.program import typed
from console.errors import Explained
from console.text import one_line
from console.views.doc import Line, line, text_of

_ANSI = {"strong": "1", "muted": "2", "good": "32", "bad": "31", "warn": "33", "accent": "36", "heading": "1;34"}

WIDTH_OF_A_PIPE = 140


def width(stream: TextIO | None = None) -> int:
    """Cells of the terminal; where there is none, enough that no id is cut."""
    return shutil.get_terminal_size((100, 24)).columns if (stream or sys.stdout).isatty() else WIDTH_OF_A_PIPE


def has_screens() -> bool:
    """Whether standard output is a terminal that screens can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def write(rows: Iterable[Line], *, stream: TextIO | None = None) -> None:
    """Write lines, coloured where that is wanted."""
    out = stream or sys.stdout
    colour = _wants_colour(out)
    for row in rows:
        out.write((_coloured(row) if colour else text_of(row).rstrip()) + "\n")
    out.flush()


def write_json(data: Any) -> None:
    """Write the one JSON object of a command."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def answer(rows: Iterable[Line], data: Any, *, as_json: bool) -> None:
    """Write either the lines or the object."""
    if as_json:
        write_json(data)
    else:
        write(rows)


def error(found: Explained, *, as_json: bool) -> None:
    """Say what was wrong and how to mend it, in one or two lines."""
    if as_json:
        write_json({"error": {"code": found.code, "message": found.message, "hint": found.hint}})
    rows = [line(("error: ", "bad"), one_line(found.message, limit=400))]
    if found.hint:
        rows.append(line(("hint: ", "accent"), one_line(typed(found.hint), limit=400)))
    write(rows, stream=sys.stderr)


def note(words: str) -> None:
    """Write one line to standard error."""
    write([line((typed(words), "muted"))], stream=sys.stderr)


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _coloured(row: Line) -> str:
    return "".join(f"\x1b[{_ANSI[s.tone]}m{s.text}\x1b[0m" if s.tone in _ANSI else s.text for s in row).rstrip()
