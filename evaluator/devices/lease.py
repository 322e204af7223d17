"""Exclusive hold of a device by one judge: two measurements at once would time each other.

A file lock per device and machine, held from the first runner to the end of the job; it falls with
the process, however that ends. Builds need no lease.
Not for: choosing whose job is next (the daemon's queue does that).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from evaluator.errors import EnvironmentFault

LOOK_EVERY_S = 0.5
SHARED = Path("/tmp")
"""The same for every user and whatever TMPDIR says: one device is one lease. Two judges at real-time priority would starve each other."""


class DeviceLease:
    """The lock of one device."""

    def __init__(self, device: str, *, waiting: Callable[[], None], directory: Path | None = None) -> None:
        self._path = (directory or _shared()) / f"ratchet-device-{device.replace(':', '-')}.lock"
        self._waiting = waiting
        self._descriptor = -1

    def __enter__(self) -> DeviceLease:
        try:
            self._descriptor = _open(self._path)
        except OSError as error:
            raise EnvironmentFault(
                f"the device's lock {self._path} cannot be opened: {error.strerror}", "remove it, or run as its owner"
            ) from error
        if not self._try():
            self._waiting()
            while not self._try():
                time.sleep(LOOK_EVERY_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._descriptor)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _open(path: Path) -> int:
    """The lock file, made where it is missing; another user's can be locked as well, reading is enough for that."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        os.fchmod(descriptor, 0o644)
        return descriptor


def _shared() -> Path:
    return SHARED if os.access(SHARED, os.W_OK) else Path(tempfile.gettempdir())
