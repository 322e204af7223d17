"""The journal of one run: `attempts.jsonl`, the truth that everything else is derived from.

Invariant: what `append` returned is on disk (one write, one fsync for the group) before anybody acts
on it, in the order of `seq`, by one writer at a time (an exclusive flock). A write that fails is cut
off again, so a full disk costs the group and not the journal.
A group is not a transaction: a kill inside its write can leave a leading part of it.
Not for: deriving state (`state.reducer`), or reading a journal that somebody else writes
(`state.follower`, `state.lines.read_records`).
"""

from __future__ import annotations

import datetime
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from state.chain import data_of, decode, seal
from state.errors import Busy, NewerVersion, NotWritable, StateError, WrongRun
from state.events import FORMAT_VERSION, Event, Record
from state.files import atomic_write, sync_directory
from state.lines import LineIndex, read_records

__all__ = ["Entry", "Journal", "read_records", "utc_now"]

Entry = tuple[str, str, Event | dict[str, Any]]
"""kind, actor, data."""


def utc_now() -> str:
    """This moment as RFC 3339 UTC with milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """One run's journal, open for appending."""

    def __init__(self, fd: int, *, path: Path, run: str, clock: Callable[[], str]) -> None:
        self._fd = fd
        self._clock = clock
        self._lock = threading.Lock()
        self._broken: str | None = None
        self._index = LineIndex(fd, path=path)
        self.path = path
        self.run = run
        self.repaired: str | None = None
        """What was dropped from a torn end on open, in words; None when nothing was."""

    @classmethod
    def open(cls, path: Path, *, run: str, clock: Callable[[], str] = utc_now) -> Journal:
        """Open or create a journal and hold it until `close`.

        Raises Busy, Damaged, NewerVersion, WrongRun or NotWritable; the file is then as it was.
        """
        fd = _open_locked(path)
        journal = cls(fd, path=path, run=run, clock=clock)
        try:
            journal._load()
        except BaseException:
            os.close(fd)
            raise
        return journal

    @property
    def tail_seq(self) -> int:
        """Seq of the last durable record; 0 when there is none."""
        return self._index.tail_seq

    @property
    def last_hash(self) -> str:
        """Hash of the last durable record; 64 zeros when there is none."""
        return self._index.last_hash

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        """Make `entries` durable as the next records and return them as a reader will see them."""
        with self._lock:
            if self._broken is not None:
                raise StateError(f"{self.path} can no longer be written: {self._broken}", hint="restart the daemon; it repairs the end")
            lines = self._seal(entries)
            self._write(b"".join(line for line, _ in lines))
            first = self.tail_seq + 1
            for line, digest in lines:
                self._index.add(len(line), digest=digest)
            return [decode(line[:-1], number=first + i) for i, (line, _) in enumerate(lines)]

    def read(self, seq: int) -> Record:
        """The record with this seq; KeyError when there is none."""
        return self._index.read(seq)

    def since(self, after: int, limit: int | None = None) -> list[Record]:
        """Records with seq > `after`, at most `limit`, in order."""
        return self._index.since(after, limit=limit)

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Every record with seq > `after`, read in batches."""
        return self._index.walk(after)

    def hash_at(self, seq: int) -> str | None:
        """Hash of the record with this seq; None when there is none."""
        return self._index.hash_at(seq)

    def close(self) -> None:
        """Release the lock; the journal is unusable afterwards."""
        if self._broken != "closed":
            self._broken = "closed"
            os.close(self._fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        self._index.extend()
        if self._index.newest_version > FORMAT_VERSION:
            raise NewerVersion(str(self.path), found=self._index.newest_version, known=FORMAT_VERSION)
        if self._index.run not in (None, self.run):
            raise WrongRun(f"{self.path} is the journal of run {self._index.run!r}, not of {self.run!r}")
        torn = os.fstat(self._fd).st_size - self._index.end
        if torn:
            kept = self._keep_torn(torn)
            self._cut_back()
            self.repaired = f"dropped a torn last line of {torn} bytes after record {self.tail_seq}; the bytes are kept in {kept.name}"

    def _keep_torn(self, size: int) -> Path:
        kept = self.path.with_name(self.path.name + ".torn")
        atomic_write(kept, os.pread(self._fd, size, self._index.end))
        return kept

    def _seal(self, entries: Sequence[Entry]) -> list[tuple[bytes, str]]:
        sealed: list[tuple[bytes, str]] = []
        prev, seq, ts = self._index.last_hash, self.tail_seq, self._clock()
        for kind, actor, data in entries:
            seq += 1
            line, prev = seal(seq=seq, ts=ts, run=self.run, kind=kind, actor=actor, data=data_of(kind, data), prev=prev)
            sealed.append((line, prev))
        return sealed

    def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except OSError as error:
            self._undo(error)
            raise NotWritable(self.path, error) from error

    def _undo(self, error: OSError) -> None:
        try:
            self._cut_back()
        except OSError as second:
            self._broken = f"{error.strerror}; undoing the write failed too: {second.strerror}"

    def _cut_back(self) -> None:
        os.ftruncate(self._fd, self._index.end)
        os.fsync(self._fd)


def _open_locked(path: Path) -> int:
    created = not path.exists()
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NotWritable(path, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise Busy(
            f"another process is writing {path}", hint="stop the other daemon first (`ratchet status` names it), or use another --state-dir"
        ) from error
    if created:
        sync_directory(path.parent)
    return fd
