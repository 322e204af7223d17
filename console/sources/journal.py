"""A journal file as a source, also one that is still growing.

Invariant: only lines ended by LF exist and every one passed the chain check; a torn tail is neither
shown nor an error, any other damage names its line.
Not for: writing or repairing (`state.journal`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from watchfiles import awatch

from console.errors import UsageFault
from console.sources.base import Batch
from console.sources.paths import journal_path
from state.events import Record
from state.follower import Follower
from state.model import RunState
from state.reducer import fold

_PAGE = 500
_NO_GAUGES: tuple[Mapping[str, Any], ...] = ()


class JournalSource:
    """One `attempts.jsonl`, read from its start."""

    live = False

    def __init__(self, path: Path) -> None:
        self.path = journal_path(path)
        self._file = Follower(self.path)
        self.version = 0
        """Highest format version among the records folded by `open`."""

    @property
    def place(self) -> str:
        """The file's path."""
        return f"journal {self.path}"

    async def open(self) -> RunState:
        """Check every line and fold all of them."""
        await asyncio.to_thread(self._file.poll)
        if self._file.tail_seq == 0:
            raise UsageFault(f"{self.path} holds no complete record", "give the attempts.jsonl of a run")
        return await asyncio.to_thread(lambda: fold(self._walk()))

    def _walk(self) -> Iterator[Record]:
        for record in self._file.walk():
            self.version = max(self.version, record.v)
            yield record

    async def follow(self, after: int) -> AsyncIterator[Batch]:
        """Yield the records after `after`, then what is appended to the file."""
        while True:
            while records := self._file.since(after, limit=_PAGE):
                after = records[-1].seq
                yield Batch(records=tuple(records))
            await self._grown()

    async def page(self, after: int, limit: int) -> list[Record]:
        """Return records that were seen already."""
        return self._file.since(after, limit=limit)

    async def candidate(self, sha256: str) -> str | None:
        """Read `candidates/<sha256>.py` beside the journal, if it still is that text."""
        path = self.path.parent / "candidates" / f"{Path(sha256).name}.py"
        with contextlib.suppress(OSError, UnicodeDecodeError):
            data = path.read_bytes()
            return data.decode() if hashlib.sha256(data).hexdigest() == sha256 else None
        return None

    async def gauges(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield nothing: gauges are not journalled."""
        for value in _NO_GAUGES:
            yield value

    async def close(self) -> None:
        """Close the file."""
        self._file.close()

    async def _grown(self) -> None:
        """Return when there are new complete records."""
        stop = asyncio.Event()
        # The directory is watched first, so that nothing written in between is missed.
        watch = awatch(self.path.parent, recursive=False, step=50, stop_event=stop, yield_on_timeout=True, rust_timeout=1_000)
        try:
            async for _ in watch:
                if await asyncio.to_thread(self._file.poll):
                    return
        finally:
            stop.set()
