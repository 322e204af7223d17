"""A copy in a file, for terminals that ignore clipboard requests.

Invariant: the file is the user's alone (0600) and holds the last copy only.
Not for: the clipboard itself (Textual sends one OSC 52 request, which is never acknowledged).
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

LIMIT = 1_000_000


def saved(text: str, directory: Path | None = None) -> str:
    """Write the copy and return the words that say where it went."""
    folder = directory or platformdirs.user_cache_path("ratchet", appauthor=False)
    path = folder / "copy.txt"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text[:LIMIT])
    except OSError as error:
        return f"sent to the clipboard; no file ({error.strerror})"
    return f"sent to the clipboard, and written to {path}"
