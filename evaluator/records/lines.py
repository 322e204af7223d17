"""How a judge says how far it is: one JSON object a line, `{"progress": {...}}`, among whatever else is printed.

Not for: results (they are files).
"""

from __future__ import annotations

import json

from evaluator.records.encoding import decode, encode
from evaluator.records.jobs import Progress


def progress_line(progress: Progress) -> str:
    """One step as a line, without its end."""
    return json.dumps({"progress": encode(progress)}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_progress_line(line: str | bytes) -> Progress | None:
    """The step that a line tells of; None for any other line."""
    try:
        said = json.loads(line)
        return decode(Progress, said["progress"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
