"""Following a stream for as long as it takes: reconnecting, and dropping what was seen.

Invariant: records come in order of seq, each exactly once; a gap is an error, never skipped. After a
restart of the daemon the stream goes on only if the last record seen still has the hash it had.
Not for: starting where nothing is known; take a snapshot first.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import msgspec

from daemon.answered import Answered, check
from daemon.errors import NotReachable, StreamReset
from state.events import Record

Connection = Literal["connected", "lost"]
Status = Callable[[Connection], None]

BACKOFF_S = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
READ_TIMEOUT_S = 45.0
"""Three of the daemon's heartbeats."""
EVENT_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a follower is."""

    run: str
    nonce: str
    seq: int
    digest: str
    """Hash of record `seq`."""


def ignore(_connection: Connection) -> None:
    """A status nobody looks at."""


def unreachable(socket: str, error: Exception) -> NotReachable:
    """No daemon answers."""
    detail = " ".join(str(error).split())[:200] or type(error).__name__
    return NotReachable(f"no daemon answers on {socket}: {detail}", "start one with: ratchet daemon, or name its socket with --socket")


async def follow(http: httpx2.AsyncClient, position: Position, *, status: Status = ignore) -> AsyncIterator[Record]:
    """Every record after `position`; see `daemon.client.Client.events`."""
    failures = 0
    while True:
        try:
            async for record in _once(http, position, status=status):
                failures = 0
                position = dataclasses.replace(position, seq=record.seq, digest=record.hash)
                yield record
        except httpx2.TransportError:
            pass
        except Answered as refused:
            if refused.status != 410:
                raise
            position = await _moved(http, position, refused)
            continue
        status("lost")
        await asyncio.sleep(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
        failures += 1


async def follow_gauges(http: httpx2.AsyncClient, run: str, *, status: Status = ignore) -> AsyncIterator[dict[str, Any]]:
    """The latest values whenever they change."""
    failures = 0
    while True:
        try:
            async for name, data in _events(http, "gauges", {"run": run}, headers={}, status=status):
                failures = 0
                if name == "gauges":
                    yield msgspec.json.decode(data)
        except httpx2.TransportError:
            pass
        status("lost")
        await asyncio.sleep(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
        failures += 1


async def _once(http: httpx2.AsyncClient, position: Position, *, status: Status) -> AsyncIterator[Record]:
    """Records of one connection, until it ends."""
    last = position.seq
    headers = {"last-event-id": f"{position.nonce}:{last}"}
    async for name, data in _events(http, "events", {"run": position.run}, headers=headers, status=status):
        if name != "record":
            continue
        record = msgspec.json.decode(data, type=Record)
        if record.seq <= last:
            continue
        if record.seq != last + 1:
            raise StreamReset(f"record {last + 1} is missing from the stream", "take a new snapshot")
        last = record.seq
        yield record


async def _events(
    http: httpx2.AsyncClient, path: str, parameters: dict[str, str], *, headers: dict[str, str], status: Status
) -> AsyncIterator[tuple[str, str]]:
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=5.0)
    headers = {**headers, "accept": "text/event-stream"}
    async with http.stream("GET", path, params=parameters, headers=headers, timeout=timeout) as response:
        if response.status_code != 200:
            check(response.status_code, await response.aread())
        status("connected")
        async for event in httpx2.EventSource(response, max_event_size=EVENT_LIMIT):
            if event.data:
                yield event.event, event.data


async def _moved(http: httpx2.AsyncClient, position: Position, refused: Answered) -> Position:
    """The same position in the stream of another life of the daemon, if the journal is the same one."""
    nonce = refused.more.get("nonce")
    if not isinstance(nonce, str) or nonce == position.nonce:
        raise StreamReset(refused.message, refused.hint) from refused
    if position.seq and not await _same(http, position, nonce):
        raise StreamReset(f"record {position.seq} of run {position.run} is another one now", "take a new snapshot") from refused
    return dataclasses.replace(position, nonce=nonce)


async def _same(http: httpx2.AsyncClient, position: Position, nonce: str) -> bool:
    parameters: dict[str, str | int] = {"run": position.run, "after": position.seq - 1, "limit": 1, "nonce": nonce}
    response = await http.get("events", params=parameters)
    try:
        check(response.status_code, response.content)
    except Answered as refused:
        if refused.status == 410:
            return False
        raise
    found = msgspec.json.decode(response.content)["records"]
    return bool(found) and found[0]["hash"] == position.digest
