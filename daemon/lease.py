"""The exclusive hold of one device, over a whole job.

A file lock per device and user. The judge inherits the open file, so the lease lasts until the last
process of the job is gone, even where the daemon was killed in between: two measurements never share
a device.
Invariant: a lease is held from before the judge starts until its group is verified gone.
Not for: foreign programs on the device; the judge looks for those.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from daemon.errors import EnvironmentFault
from daemon.places import runtime_dir

_RETRY_S = 0.25
"""flock has no event to wait on without a thread that cannot be cancelled."""


def lease_path(device: str, directory: Path | None = None) -> Path:
    """The lock file of `device`: `RATCHET_LEASE_DIR`, else this user's runtime directory."""
    root = directory or Path(os.environ.get("RATCHET_LEASE_DIR") or runtime_dir())
    return root / f"device-{re.sub(r'[^A-Za-z0-9.-]', '_', device)}.lock"


@contextlib.asynccontextmanager
async def hold(device: str, *, directory: Path | None = None, waiting: Callable[[], None] | None = None) -> AsyncIterator[int]:
    """Hold the lease; yields the descriptor a child must inherit. `waiting` is called once if it is taken."""
    path = lease_path(device, directory)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EnvironmentFault(
            f"the lease of device {device} cannot be opened: {path} ({error.strerror})", "set RATCHET_LEASE_DIR"
        ) from error
    try:
        await _acquire(descriptor, waiting)
        yield descriptor
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int, waiting: Callable[[], None] | None) -> None:
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None and not told:
                waiting()
                told = True
            await asyncio.sleep(_RETRY_S)
        else:
            return
