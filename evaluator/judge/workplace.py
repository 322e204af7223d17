"""A directory for one job, removed with it; those that a killed judge left behind are swept.

Each is held by a lock that falls with its judge, however that ends, and carries a mark that is only made under
the lock: what is marked and can be locked belongs to nobody. What carries no mark is never touched.
Not for: anything that outlives a job (builds are in the cache).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "ratchet-job-"
MARK = ".judge"


@contextmanager
def workplace() -> Iterator[Path]:
    """A fresh directory, held while the block runs."""
    _sweep(Path(tempfile.gettempdir()))
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _lock(directory)
    (directory / MARK).touch()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _sweep(parent: Path) -> None:
    for directory in parent.glob(f"{PREFIX}*"):
        lock = _lock(directory) if _is_marked(directory) else None
        if lock is not None:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)


def _is_marked(directory: Path) -> bool:
    try:
        return directory.lstat().st_uid == os.getuid() and (directory / MARK).lstat().st_uid == os.getuid()
    except OSError:
        return False


def _lock(directory: Path) -> int | None:
    """The held lock of a directory, or None where another judge holds it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
