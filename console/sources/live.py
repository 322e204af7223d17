"""A run of a daemon as a source, and what an operator may ask of it.

Invariant: every record once and in order, over reconnects and restarts of the daemon; where the
journal behind the stream is another one, a whole new state comes instead.
Not for: finding the daemon (`console.cli.link`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from console.sources.base import Batch, Link
from daemon.client import Answered, Client, Connection, Snapshot, StreamReset
from state.events import Record
from state.model import RunState

_PAGE = 500
_LOST = Link(connected=False, detail="the daemon does not answer")
_FOUND = Link(connected=True)
_Arrived = Record | Link | Exception


class LiveSource:
    """One run behind a daemon's socket."""

    live = True

    def __init__(self, client: Client, run: str) -> None:
        self._client = client
        self._run = run
        self._snapshot: Snapshot | None = None

    @property
    def place(self) -> str:
        """The daemon's socket."""
        return f"daemon {self._client.socket}"

    async def open(self) -> RunState:
        """Take a snapshot."""
        self._snapshot = await self._client.snapshot(self._run)
        return self._snapshot.state

    async def follow(self, after: int) -> AsyncIterator[Batch]:
        """Yield the records after `after` as they come, and news of the link."""
        snapshot = self._snapshot or await self._client.snapshot(self._run)
        while True:
            try:
                async for batch in self._from(snapshot, after):
                    after = batch.records[-1].seq if batch.records else after
                    yield batch
            except StreamReset:
                snapshot = self._snapshot = await self._client.snapshot(self._run)
                after = snapshot.seq
                yield Batch(state=snapshot.state)

    async def page(self, after: int, limit: int) -> list[Record]:
        """Fetch a page of the journal."""
        return (await self._client.page(self._run, after=after, limit=min(limit, _PAGE))).records

    async def candidate(self, sha256: str) -> str | None:
        """Fetch a candidate's text."""
        try:
            return await self._client.candidate(self._run, sha256)
        except Answered:
            return None

    async def gauges(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield latest values as they change."""
        async for values in self._client.gauge_stream(self._run):
            yield values

    async def close(self) -> None:
        """Leave the client to its owner."""

    async def _from(self, snapshot: Snapshot, after: int) -> AsyncIterator[Batch]:
        while after < snapshot.seq:
            records = await self.page(after, _PAGE)
            after = records[-1].seq
            yield Batch(records=tuple(records))
        arrived: asyncio.Queue[_Arrived] = asyncio.Queue()
        pump = asyncio.create_task(self._pump(snapshot, arrived), name=f"records of {self._run}")
        try:
            while True:
                batch = _batch(await arrived.get(), arrived, after=after)
                after = batch.records[-1].seq if batch.records else after
                yield batch
        finally:
            pump.cancel()
            await asyncio.wait({pump})

    async def _pump(self, snapshot: Snapshot, arrived: asyncio.Queue[_Arrived]) -> None:
        lost = False

        def told(connection: Connection) -> None:
            nonlocal lost
            if lost or connection == "lost":
                arrived.put_nowait(_LOST if connection == "lost" else _FOUND)
            lost = connection == "lost"

        try:
            async for record in self._client.events(snapshot, status=told):
                arrived.put_nowait(record)
        except Exception as error:  # raised where somebody waits for the records
            arrived.put_nowait(error)


def _batch(first: _Arrived, more: asyncio.Queue[_Arrived], *, after: int) -> Batch:
    """Take what has arrived, in order; news of the link ends a batch."""
    records: list[Record] = []
    item = first
    while True:
        if isinstance(item, Exception):
            raise item
        if isinstance(item, Link):
            return Batch(records=tuple(records), link=item)
        if item.seq > after:
            records.append(item)
        if more.empty() or len(records) >= _PAGE:
            return Batch(records=tuple(records))
        item = more.get_nowait()


class LiveControl:
    """What an operator may ask of one run."""

    def __init__(self, client: Client, run: str) -> None:
        self._client = client
        self._run = run

    async def pause(self) -> int:
        """Ask for a pause after what is in flight."""
        return await self._client.pause(self._run)

    async def resume(self) -> int:
        """Ask to go on."""
        return await self._client.resume(self._run)

    async def stop(self) -> int:
        """Ask the run to end."""
        return await self._client.stop(self._run)

    async def nudge(self, text: str) -> int:
        """Queue a message to the orchestrator."""
        return await self._client.nudge(self._run, text)
