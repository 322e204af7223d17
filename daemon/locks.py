"""One holder at a time: a file lock that the kernel drops when its holder dies.

Invariant: the file is never unlinked while anybody may wait for it, so two holders cannot lock two
different inodes of one name; what the file holds is a note for people and is not trusted.
Not for: the device lease (`daemon.lease`), which a child inherits.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from daemon.errors import AlreadyRunning, StateUnusable


class InstanceLock:
    """An exclusive lock on `path`, taken when constructed."""

    def __init__(self, path: Path, *, what: str) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateUnusable(f"the lock file cannot be opened: {path} ({error.strerror})", "make its directory writable") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            note = read_note(path)
            os.close(self._fd)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            holder = f" (pid {note['pid']})" if isinstance(note.get("pid"), int) else ""
            raise AlreadyRunning(
                f"another daemon{holder} holds {what}", "attach to it with `ratchet console`, or choose other paths"
            ) from error

    def note(self, content: dict[str, object]) -> None:
        """Write who holds it, for people and for `places.find_socket`."""
        text = json.dumps(content).encode()
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text, 0)

    def release(self) -> None:
        """Let go; the note is emptied first, so that nobody is sent to a dead process."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> InstanceLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def read_note(path: Path) -> dict[str, object]:
    """What the holder wrote; empty where there is nothing readable."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
