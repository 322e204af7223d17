"""Group commit: everybody's records, one write and one fsync at a time.

Records handed in while the disk works become the next group. The fsync runs in a thread of its own;
folding and waking happen on the loop.
Invariant: nobody sees a record (a waiter, the state, a stream) before its group is durable and the
state is folded; two records of one kind and cause are never written.
Not for: choosing what to write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from daemon.tail import Tail
from state import reducer
from state.chain import data_of
from state.errors import BadRecord, StateError
from state.events import Record
from state.journal import Entry, Journal
from state.model import RunState

_log = structlog.get_logger()

_GROUP_LIMIT = 512
"""Most requests in one group, so that one fsync is never behind an unbounded write."""

Observer = Callable[[Sequence[Record], RunState], None]
"""Told of every durable group, on the loop, after the state is folded."""


@dataclass(slots=True)
class _Request:
    entries: list[Entry]
    key: str | None
    """`<kind> <cause>` of the first entry where it must have this effect only once."""
    done: asyncio.Future[list[Record]]
    twin: _Request | None = field(default=None)
    """An earlier request of the same group with the same key."""


class Writer:
    """The only writer of one run's journal and the only one to change its state."""

    def __init__(self, journal: Journal, *, state: RunState, observers: Sequence[Observer] = ()) -> None:
        self.journal = journal
        self.state = state
        self.tail = Tail(journal.tail_seq)
        self._observers = tuple(observers)
        self._queue: asyncio.Queue[_Request | None] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._task = asyncio.create_task(self._work(), name=f"writer {journal.run}")
        self._closed = False
        self._broken: Exception | None = None

    async def commit(self, entries: Sequence[Entry], *, once: bool = False) -> list[Record]:
        """Make `entries` durable together and return them.

        With `once`, if the first one's cause already had an effect of this kind, nothing is written and the earlier
        record is returned alone. Raises BadRecord for an entry that must not be journalled, NotWritable where the
        disk refuses.
        """
        if self._closed:
            raise StateError(f"the journal of run {self.journal.run} is closed")
        if self._broken is not None:
            raise StateError(f"the state of run {self.journal.run} is broken: {self._broken!r}", hint="restart the daemon")
        checked = [(kind, actor, data_of(kind, data)) for kind, actor, data in entries]
        kind, _, first = checked[0]
        key = f"{kind} {first['cause']}" if once and first.get("cause") else None
        request = _Request(entries=list(checked), key=key, done=asyncio.get_running_loop().create_future())
        self._queue.put_nowait(request)
        return await request.done

    async def finish(self) -> None:
        """Write what is queued and take nothing more; the journal can still be read."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)
        await self._task
        self._thread.shutdown(wait=True)
        self.tail.close()

    async def _work(self) -> None:
        going = True
        while going:
            group = [await self._queue.get()]
            while len(group) < _GROUP_LIMIT and not self._queue.empty():
                group.append(self._queue.get_nowait())
            going = None not in group
            await self._write([request for request in group if request is not None])

    async def _write(self, group: list[_Request]) -> None:
        fresh = self._settle_known(group)
        try:
            await self._append(fresh)
        except BadRecord as error:
            await self._write_singly(fresh, error)
        except StateError as error:
            _fail(fresh, error)
        except Exception as error:
            # A bug in folding or an observer: what is on disk is right, this life's state may not be.
            _log.exception("writer broke", run=self.journal.run)
            self._broken = error
            _fail(fresh, StateError(f"the state of run {self.journal.run} is broken: {error!r}", hint="restart the daemon"))
        for request in group:
            if request.twin is not None:
                _share(request, request.twin)

    def _settle_known(self, group: list[_Request]) -> list[_Request]:
        fresh: list[_Request] = []
        writing: dict[str, _Request] = {}
        for request in group:
            if request.key is not None and request.key in self.state.effects:
                _resolve(request, [self.journal.read(self.state.effects[request.key])])
            elif request.key is not None and request.key in writing:
                request.twin = writing[request.key]
            else:
                fresh.append(request)
                if request.key is not None:
                    writing[request.key] = request
        return fresh

    async def _append(self, fresh: list[_Request]) -> None:
        if not fresh:
            return
        entries = [entry for request in fresh for entry in request.entries]
        records = await asyncio.get_running_loop().run_in_executor(self._thread, self.journal.append, entries)
        for record in records:
            reducer.apply(self.state, record)
        for observe in self._observers:
            observe(records, self.state)
        self.tail.advance(records[-1].seq)
        start = 0
        for request in fresh:
            stop = start + len(request.entries)
            _resolve(request, records[start:stop])
            start = stop

    async def _write_singly(self, fresh: list[_Request], error: BadRecord) -> None:
        """One request of the group cannot be journalled: the others must not suffer for it."""
        if len(fresh) == 1:
            _fail(fresh, error)
            return
        for request in fresh:
            try:
                await self._append([request])
            except StateError as own:
                _fail([request], own)


def _resolve(request: _Request, records: list[Record]) -> None:
    if not request.done.done():
        request.done.set_result(records)


def _fail(requests: list[_Request], error: StateError) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_exception(error)


def _share(request: _Request, twin: _Request) -> None:
    if twin.done.cancelled() or twin.done.exception() is not None:
        _fail([request], StateError("the same record was being written and failed"))
    else:
        _resolve(request, twin.done.result()[:1])
