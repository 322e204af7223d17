"""Keeps the SQLite projection behind the journals, a moment later and never ahead.

Invariant: only durable, folded records are projected; a projection that failed is caught up from the
journal with the next record, so nothing is lost by a full disk but freshness.
Not for: truth; a run never waits for it, except its creation, so that a list shows it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import structlog

from daemon.tasks import cancel
from state.errors import StateError
from state.events import Record
from state.model import RunState
from state.store import Store

_log = structlog.get_logger()


class Projected(Protocol):
    """What is needed of an open run."""

    @property
    def id(self) -> str:
        """The run's id."""

    @property
    def state(self) -> RunState:
        """Folded from every durable record."""

    @property
    def tail_seq(self) -> int:
        """Seq of the last durable, folded record."""

    def hash_at(self, seq: int) -> str | None:
        """Hash of one record."""

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Durable records after `after`."""


class Projector:
    """One task that catches runs up as they grow."""

    def __init__(self, store: Store, *, find: Callable[[str], Projected | None]) -> None:
        self._store = store
        self._find = find
        self._due: set[str] = set()
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._work(), name="projector")

    def observe(self, records: Sequence[Record], state: RunState) -> None:
        """Note that a run has grown (an `Observer`)."""
        self._due.add(records[0].run)
        self._wake.set()

    async def project(self, run: Projected) -> None:
        """Catch one run up; a failure is logged and made up for later."""
        try:
            await self._store.catch_up(run, run=run.id, state=run.state)
        except (StateError, OSError, sqlite3.Error) as error:
            _log.error("cannot project", run=run.id, why=str(error))

    async def close(self) -> None:
        """Catch everything up and end the task."""
        await cancel(self._task)
        await self._flush()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._flush()

    async def _flush(self) -> None:
        while self._due:
            run = self._find(self._due.pop())
            if run is not None:
                await self.project(run)
