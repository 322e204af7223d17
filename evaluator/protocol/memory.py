"""Reading a stopped runner's memory into a page that the trusted process maps.

The answer is whatever lies there at the instant the runner is stopped; an address that is not
mapped is `Unreadable`. Both parties are bounded by the size of the shared page.
Not for: interpreting the bytes (the trusted process does that).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

from evaluator.protocol.sealing import sealed_memory


class Unreadable(Exception):
    """The runner named memory that it does not have."""


class Snapshot:
    """A page for copies of a runner's memory; grows by being replaced."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor, self._map = sealed_memory("snapshot", size, read_only=True)
        self._view = memoryview(self._map)

    def take(self, memory: int, ranges: Sequence[tuple[int, int]]) -> list[int]:
        """Copy (address, bytes) ranges from an open /proc/<pid>/mem; return where each begins."""
        offsets, offset = [], 0
        for address, nbytes in ranges:
            if offset + nbytes > self.size:
                raise Unreadable(f"the outputs span more than the {self.size} bytes the reference's do")
            _read_exactly(memory, address, self._view[offset : offset + nbytes])
            offsets.append(offset)
            offset += -(-nbytes // 64) * 64
        return offsets

    def close(self) -> None:
        """Release the page."""
        self._view.release()
        self._map.close()
        os.close(self.descriptor)


def open_memory(pid: int) -> int:
    """A descriptor for reading the memory of a process of ours."""
    return os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)


def map_snapshot(descriptor: int, size: int) -> mmap.mmap:
    """The trusted process's read-only view of a snapshot page."""
    return mmap.mmap(descriptor, size, prot=mmap.PROT_READ)


def _read_exactly(memory: int, address: int, into: memoryview) -> None:
    done = 0
    while done < len(into):
        try:
            count = os.preadv(memory, [into[done:]], address + done)
        except (OSError, OverflowError, ValueError) as error:
            raise Unreadable(f"no memory at the output's address ({error})") from error
        if count == 0:
            raise Unreadable("no memory at the output's address")
        done += count
