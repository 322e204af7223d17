"""Reading a journal that grows while it is read, without locking it.

Invariant: `poll` returns every complete record exactly once, in order, each checked against the chain;
a line that is still being written is not there yet. A file that was replaced or cut behind the reader
is an error (`Replaced`), never a mixture of two journals.
Not for: waiting (watch the file, or poll when told to) and writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from state.errors import Replaced
from state.events import Record
from state.lines import LineIndex, open_for_reading


class Follower:
    """A read-only view of one journal file, extended by `poll`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_for_reading(path)
        self._inode = os.fstat(self._fd).st_ino
        self._index = LineIndex(self._fd, path=path)

    @property
    def tail_seq(self) -> int:
        """Seq of the last record seen; 0 before the first."""
        return self._index.tail_seq

    @property
    def run(self) -> str | None:
        """The run that the records seen belong to."""
        return self._index.run

    @property
    def last_hash(self) -> str:
        """Hash of the last record seen; 64 zeros before the first."""
        return self._index.last_hash

    @property
    def newest_version(self) -> int:
        """Largest format version seen; 0 before the first record."""
        return self._index.newest_version

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last complete record: a line being written, or a torn one."""
        return os.fstat(self._fd).st_size - self._index.end

    def poll(self, *, limit: int | None = None) -> list[Record]:
        """New complete records since the last call, about `limit` at most; Replaced when it is another file now."""
        self._refuse_other_file()
        before = self.tail_seq
        self._index.extend(limit=limit)
        return self._index.since(before)

    def read(self, seq: int) -> Record:
        """The record with this seq; KeyError when it was not seen yet."""
        return self._index.read(seq)

    def since(self, after: int, limit: int | None = None) -> list[Record]:
        """Records seen with seq > `after`, at most `limit`."""
        return self._index.since(after, limit=limit)

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Every record seen with seq > `after`, read in batches."""
        return self._index.walk(after)

    def hash_at(self, seq: int) -> str | None:
        """Hash of the record with this seq; None when it was not seen."""
        return self._index.hash_at(seq)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_other_file(self) -> None:
        try:
            inode = os.stat(self.path).st_ino
        except FileNotFoundError as error:
            raise Replaced(f"{self.path} is gone", hint="open it again where it was moved to") from error
        if inode != self._inode:
            raise Replaced(f"{self.path} was replaced by another file", hint="open it again from the start")
        if self.torn_bytes < 0:
            raise Replaced(f"{self.path} was cut short behind record {self.tail_seq}", hint="open it again from the start")
