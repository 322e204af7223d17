"""An index over the complete lines of a journal file.

Offsets only: eight bytes a record, whatever the records hold. Lines are read with pread, so readers
never move a writer's position. Only lines ended by LF exist; what follows the last LF is a torn tail.
Invariant: every indexed line passed the chain check, in order, exactly once.
Not for: writing (`state.journal`) or watching for changes (`state.follower`).
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path

from state.chain import GENESIS, MAX_RECORD_BYTES, check, decode
from state.errors import Damaged, Unreadable
from state.events import Record

CHUNK_BYTES = 1 << 20
"""Bytes read at a time while indexing."""

BATCH_RECORDS = 512
"""Records that `walk` holds at a time."""


class LineIndex:
    """The records of one open file, found by seq."""

    def __init__(self, fd: int, *, path: Path) -> None:
        self._fd = fd
        self.path = path
        # Where every record ends, after a leading 0: one append is then atomic for readers in other threads.
        self._ends = array("Q", [0])
        self.last_hash = GENESIS
        self.run: str | None = None
        """Taken from the first record."""
        self.newest_version = 0
        """Largest `v` seen."""

    @property
    def tail_seq(self) -> int:
        """Seq of the last record; 0 when there is none."""
        return len(self._ends) - 1

    @property
    def end(self) -> int:
        """Offset just after the last complete line."""
        return self._ends[-1]

    def extend(self, *, limit: int | None = None) -> int:
        """Index complete lines after the last one known, about `limit` at most, and return how many there were.

        The limit is met to within the lines of one read of `CHUNK_BYTES`.
        """
        before = self.tail_seq
        rest = b""
        position = self.end
        while (limit is None or self.tail_seq - before < limit) and (chunk := os.pread(self._fd, CHUNK_BYTES, position)):
            position += len(chunk)
            rest = self._take(rest + chunk)
            if len(rest) > MAX_RECORD_BYTES:
                raise Damaged(self.tail_seq + 1, f"a line longer than {MAX_RECORD_BYTES} bytes", path=self.path)
        return self.tail_seq - before

    def add(self, line_bytes: int, *, digest: str) -> None:
        """Note a line of `line_bytes` (LF included) that the writer itself has just made durable."""
        self.last_hash = digest
        self._ends.append(self.end + line_bytes)

    def read(self, seq: int) -> Record:
        """The record with this seq; KeyError when there is none."""
        if not 1 <= seq <= self.tail_seq:
            raise KeyError(seq)
        return self._decode(seq, seq)[0]

    def since(self, after: int, *, limit: int | None = None) -> list[Record]:
        """Records with seq > `after`, at most `limit`, in order."""
        first = max(after, 0) + 1
        last = self.tail_seq if limit is None else min(self.tail_seq, first + limit - 1)
        return self._decode(first, last) if first <= last else []

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Every record with seq > `after`, read in batches."""
        while batch := self.since(after, limit=BATCH_RECORDS):
            yield from batch
            after = batch[-1].seq

    def hash_at(self, seq: int) -> str | None:
        """Hash of the record with this seq; None when there is none."""
        return self.read(seq).hash if 1 <= seq <= self.tail_seq else None

    def _take(self, buffer: bytes) -> bytes:
        start = 0
        while (stop := buffer.find(b"\n", start)) >= 0:
            self._index(buffer[start:stop])
            start = stop + 1
        return buffer[start:]

    def _index(self, line: bytes) -> None:
        number = self.tail_seq + 1
        try:
            head = check(line, number=number, prev=self.last_hash, run=self.run)
        except Damaged as error:
            raise Damaged(error.line, error.why, path=self.path) from error
        self.run = head.run
        self.newest_version = max(self.newest_version, head.v)
        self.add(len(line) + 1, digest=head.hash)

    def _decode(self, first: int, last: int) -> list[Record]:
        start = self._ends[first - 1]
        data = _pread_all(self._fd, self._ends[last] - start, start)
        return [decode(line, number=first + i) for i, line in enumerate(data.split(b"\n")[:-1])]


def read_records(path: Path) -> Iterator[Record]:
    """Every complete record of a journal, in order, without locking it; a torn tail is left out.

    Raises Unreadable when there is no such file and Damaged where the chain does not hold. A newer
    version is read as far as its fields are known.
    """
    fd = open_for_reading(path)
    try:
        index = LineIndex(fd, path=path)
        index.extend()
        yield from index.walk()
    finally:
        os.close(fd)


def open_for_reading(path: Path) -> int:
    """A read-only descriptor of a journal; Unreadable says why there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}", hint="give the path of an attempts.jsonl") from error
    if os.path.isdir(f"/proc/self/fd/{fd}") or os.path.isdir(path):
        os.close(fd)
        raise Unreadable(f"cannot read {path}: it is a directory", hint=f"give a file, e.g. {path}/attempts.jsonl")
    return fd


def _pread_all(fd: int, size: int, offset: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.pread(fd, size, offset)):
        parts.append(part)
        size -= len(part)
        offset += len(part)
    return b"".join(parts)
