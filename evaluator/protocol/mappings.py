"""What lies where in a stopped runner: the kernel's list of its mappings, and two things that must hold of it.

An output must lie in memory that is the process's own and nothing else's: an alias of the inputs, or a mapping
of a file, holds the right values without anything having been computed. The inputs must be mapped once, whole,
where the runner says: with a second mapping it could show the judge another one than its caller has.
Source: proc_pid_maps(5).
Not for: reading the memory (`protocol.memory`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FileId = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/<pid>/maps."""

    start: int
    end: int
    private: bool
    offset: int
    file: FileId
    """(0, 0) where nothing but memory is behind it."""


def read_mappings(pid: int) -> list[Mapping]:
    """All mappings by address; a process that is gone has none."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return parse_mappings(text)


def parse_mappings(text: str) -> list[Mapping]:
    """Read the lines of /proc/<pid>/maps."""
    found = []
    for line in text.splitlines():
        reach, mode, offset, device, inode = line.split(maxsplit=5)[:5]
        start, _, end = reach.partition("-")
        major, _, minor = device.partition(":")
        file = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        found.append(Mapping(int(start, 16), int(end, 16), mode[3] == "p", int(offset, 16), file))
    return found


def file_id(descriptor: int) -> FileId:
    """As a mapping of this descriptor names it."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def is_own_memory(mappings: Sequence[Mapping], address: int, nbytes: int) -> bool:
    """Whether every byte lies in private memory with nothing behind it."""
    at, end = address, address + nbytes
    index = bisect_right(mappings, at, key=lambda mapping: mapping.start) - 1
    while at < end:
        if not 0 <= index < len(mappings):
            return False
        mapping = mappings[index]
        if not mapping.start <= at < mapping.end or not mapping.private or mapping.file[1] != 0:
            return False
        at, index = mapping.end, index + 1
    return True


def is_mapped_once(mappings: Sequence[Mapping], file: FileId, address: int, nbytes: int) -> bool:
    """Whether the file is mapped exactly once: privately, from its beginning, at this address, without gaps."""
    at = address
    for mapping in mappings:
        if mapping.file != file:
            continue
        if mapping.start != at or mapping.offset != at - address or not mapping.private:
            return False
        at = mapping.end
    return at >= address + nbytes
