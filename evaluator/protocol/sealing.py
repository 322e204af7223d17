"""Anonymous memory that one process may write and another can only read.

A memfd is mapped by its writer first and then sealed: no new writable shared mapping, no write(2),
no growing or shrinking, whoever holds a descriptor (also one reopened through /proc).
Source: memfd_create(2), fcntl(2) F_SEAL_FUTURE_WRITE (Linux 5.1).
"""

from __future__ import annotations

import fcntl
import mmap
import os

F_SEAL_SEAL = 0x1
F_SEAL_SHRINK = 0x2
F_SEAL_GROW = 0x4
F_SEAL_FUTURE_WRITE = 0x10


def sealed_memory(name: str, size: int, *, read_only: bool) -> tuple[int, mmap.mmap]:
    """A memfd of `size` bytes, this process's writable mapping of it, sealed for everybody else.

    With `read_only` false others may still write, but nobody can resize it (no SIGBUS in the judge).
    """
    descriptor = os.memfd_create(f"ratchet-{name}", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    mapping = mmap.mmap(descriptor, size)
    seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (F_SEAL_FUTURE_WRITE if read_only else 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor, mapping
