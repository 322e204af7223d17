"""The one exit for untrusted text on its way to a model: bounded and without terminal escapes.

Compiler output, tracebacks and other agents' words may hold anything. `plain` keeps printable text,
`clip` keeps the head and the tail, and `bounded` applies both to every string of a tool's answer.
Invariant: what these return is at most as long as asked, and holds no control character but \\n and \\t.
Not for: candidate sources, which are stored exactly as written or refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

REPLY_CHARS = 1 << 20
"""A reply's text is cut here before it is journalled (1 Mi characters)."""
SOURCE_BYTES = 1 << 20
"""A larger candidate is refused (1 MiB)."""
RESULT_CHARS = 24_000
"""One tool answer as JSON."""
TEXT_CHARS = 8_000
"""One string inside a tool answer."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """`text` without terminal escapes and control characters; newlines become \\n."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def clip(text: str, limit: int) -> str:
    """Head and tail of `text` around a note of what was left out, at most `limit` characters."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} of {len(text)} characters left out …]\n"
    room = max(limit - len(note), 0)
    head = room - room // 3
    return (text[:head] + note + text[len(text) - room // 3 :])[:limit]


def line(text: str, limit: int = 200) -> str:
    """`text` as one plain line."""
    return clip(" ".join(plain(text).split()), limit)


def bounded(content: dict[str, Any], *, limit: int = RESULT_CHARS) -> dict[str, Any]:
    """`content` with plain, clipped strings; replaced by a clipped rendering where it is still over `limit`."""
    clean = _clean(content, TEXT_CHARS)
    rendered = json.dumps(clean, ensure_ascii=False, default=str)
    if len(rendered) <= limit:
        return dict(clean)
    for shorter in (2_000, 500, 120):
        clean = _clean(content, shorter)
        if len(json.dumps(clean, ensure_ascii=False, default=str)) <= limit:
            return {**clean, "shortened": True}
    return {"shortened": True, "text": clip(rendered, limit // 2)}


def bad_characters(source: str) -> str | None:
    """Why `source` cannot be stored as a candidate, or None."""
    if not source.strip():
        return "the source is empty"
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        return "the source is not valid Unicode"
    if size > SOURCE_BYTES:
        return f"the source is {size} bytes; at most {SOURCE_BYTES} are accepted"
    if "\x00" in source:
        return "the source holds a NUL character"
    return None


def _clean(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return clip(plain(value), limit)
    if isinstance(value, dict):
        return {plain(str(k)): _clean(v, limit) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v, limit) for v in value]
    return value
