"""The one exit for text that somebody else wrote: model replies, candidate output, logs, file names.

Invariant: what leaves here holds no escape sequence, no control or bidirectional character and no
lone surrogate, and is bounded. It is never parsed as markup by anyone.
Not for: formatting numbers (`console.views.numbers`) or laying lines out (`console.views.doc`).
"""

from __future__ import annotations

import re
import unicodedata

BLOCK_LIMIT = 100_000
"""Characters kept of a text of many lines."""
LINE_LIMIT = 2_000
"""Characters kept of one line inside a block."""

# CSI, then the string sequences (OSC, DCS, SOS, PM, APC) with either terminator, then two-character escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, *, limit: int = BLOCK_LIMIT) -> str:
    """Return `text` without anything a terminal would act on; newlines stay, tabs become spaces."""
    cut = len(text) > limit
    text = _ESCAPES.sub("", text[:limit].replace("\r\n", "\n"))
    text = "".join(_safe(c) for c in text)
    lines = [row if len(row) <= LINE_LIMIT else row[:LINE_LIMIT] + " …" for row in text.split("\n")]
    return "\n".join(lines) + ("\n… (cut)" if cut else "")


def one_line(text: str, *, limit: int = 200) -> str:
    """Return `text` cleaned, its white space collapsed, cut to `limit` characters with an ellipsis."""
    flat = " ".join(clean(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _safe(char: str) -> str:
    if char == "\n" or " " <= char <= "~":
        return char
    if char == "\t":
        return "    "
    return "" if unicodedata.category(char) in _UNSAFE else char
