"""Which file a person means when naming a journal.

Invariant: pure path arithmetic on what exists; nothing is opened.
Not for: reading journals.
"""

from __future__ import annotations

from pathlib import Path


def journal_path(path: Path) -> Path:
    """Take a journal, or the directory of a run that holds one."""
    inside = path / "attempts.jsonl"
    return inside if path.is_dir() and inside.is_file() else path
