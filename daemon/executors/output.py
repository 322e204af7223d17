"""Pipes of a judge: always drained, never trusted, never unbounded.

Invariant: a pipe is read until its end whatever is in it, and memory stays within a cap.
Not for: what the lines mean to anybody but the progress gauge.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable

from evaluator.records import Progress, read_progress_line

_CHUNK = 65536
_LINE_LIMIT = 16384
LOG_LIMIT = 16384
"""Bytes kept from the end of a judge's stderr."""


async def read_progress(pipe: asyncio.StreamReader, report: Callable[[Progress], None]) -> None:
    """Report every line that is a `Progress`; skip every other, and any line over the limit."""
    pending = b""
    skipping = False
    while chunk := await pipe.read(_CHUNK):
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if not skipping:
                _report_line(line, report)
            skipping = False
        if len(pending) > _LINE_LIMIT:
            pending, skipping = b"", True


async def read_tail(pipe: asyncio.StreamReader) -> str:
    """Read to the end and keep the last `LOG_LIMIT` bytes, sanitised."""
    kept = b""
    while chunk := await pipe.read(_CHUNK):
        kept = (kept + chunk)[-LOG_LIMIT:]
    return sanitise(kept.decode("utf-8", errors="replace"))


def sanitise(text: str) -> str:
    """`text` without control, format and bidirectional characters; line ends and tabs stay."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def _report_line(line: bytes, report: Callable[[Progress], None]) -> None:
    if (progress := read_progress_line(line)) is not None:
        report(progress)
