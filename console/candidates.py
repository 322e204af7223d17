"""Candidate files that a person names on the command line.

Invariant: what is returned is non-empty UTF-8 of at most 1 MiB, without a byte order mark, with its
content address; anything else is a usage fault that says which and how to mend it.
Not for: judging the text (a candidate without its entry point is a `compile_error` of the judge).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from console.errors import UsageFault
from evaluator.records import Source

LIMIT_BYTES = 1 << 20


def read_candidate(path: Path) -> Source:
    """Read one candidate file."""
    if path.is_dir():
        raise UsageFault(f"{path} is a directory", "name the candidate's Python file")
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise UsageFault(f"cannot read {path}: {error.strerror}", "check the path and its permissions") from error
    if len(data) > LIMIT_BYTES:
        raise UsageFault(f"{path} is over the limit of 1 MiB for a candidate", "a candidate is one source text; leave data out of it")
    text = _text(data, path)
    return Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def _text(data: bytes, path: Path) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is not UTF-8: byte {error.start} cannot be read", "save it as UTF-8") from error
    if not text.strip():
        raise UsageFault(f"{path} is empty", "a candidate defines ModelNew or custom_kernel")
    return text
