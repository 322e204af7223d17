"""Emptying the caches of the measuring cores before a call.

The flush runs on the measuring core itself (its private caches) and touches twice the last-level
cache, so that reference and candidate both start cold.
Not for: a GPU (its device module has its own).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

LARGEST = 256 << 20
_LINE = 64


class CacheFlush:
    """A buffer that is walked through on every measuring core."""

    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores = cores
        self.bytes = min(LARGEST, 2 * last_level_cache_bytes(cores[0]))
        self._buffer = np.zeros(self.bytes // 8, dtype=np.uint64)

    def run(self) -> None:
        """Write one word of every line, on every measuring core."""
        home = os.sched_getaffinity(0)
        try:
            for core in self._cores:
                os.sched_setaffinity(0, {core})
                self._buffer[:: _LINE // 8] += 1
        finally:
            os.sched_setaffinity(0, home)


def last_level_cache_bytes(core: int) -> int:
    """Size of the largest cache that serves `core`; 32 MiB where the system does not say."""
    sizes = [_size(p) for p in Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*/size")]
    return max(sizes, default=32 << 20)


def _size(path: Path) -> int:
    text = path.read_text().strip()
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text or 0)
