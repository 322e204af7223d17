"""The journal as a stream: `GET /v1/events`, a JSON page for scripts, server-sent events for consoles.

A follower is one integer, the seq it has; what it has not read yet stays in the journal.
Invariant: records come in order of seq without gaps, each exactly once per stream, and only when they
are durable and folded; a nonce that is not this journal's is status 410 with the right one.
Not for: gauges.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from daemon.api.answers import error_answer, json_answer
from daemon.api.parameters import Query, query
from daemon.api.stream import HEARTBEAT, HEARTBEAT_S, EventStream, event
from daemon.errors import BadRequest, StreamReset
from daemon.run import Run
from daemon.supervisor import Supervisor
from state.events import Record

PAGE = 200
PAGE_LIMIT = 500
READ_AT_ONCE = 32
CHUNK_BYTES = 256 * 1024
"""A chunk is sent when it holds this much, so one stream never holds more than a batch."""


class EventsQuery(Query, frozen=True, kw_only=True):
    """Parameters of `/v1/events`."""

    run: str
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    nonce: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = PAGE


async def events(request: Request) -> ASGIApp:
    """A page or a stream of the records after `after`."""
    asked = query(request, EventsQuery)
    supervisor: Supervisor = request.app.state.supervisor
    run = (await supervisor.get(asked.run)).run
    after, nonce = _position(request, asked)
    if (nonce is not None and nonce != run.nonce) or after > run.tail.seq:
        reset = StreamReset(f"the stream of run {run.id} is another one now", "take a new snapshot and follow from its seq")
        return error_answer(reset, more={"nonce": run.nonce, "seq": run.tail.seq})
    if "text/event-stream" in request.headers.get("accept", ""):
        return EventStream(follow(run, after))
    records = run.page(after, limit=asked.limit)
    return json_answer({"nonce": run.nonce, "records": records, "next": records[-1].seq if records else after})


async def follow(run: Run, after: int, *, heartbeat_s: float = HEARTBEAT_S) -> AsyncGenerator[bytes, None]:
    """Every record after `after` as it becomes durable, until the daemon stops."""
    yield b"retry: 1000\n\n"
    while True:
        closed = run.tail.closed
        while after < run.tail.seq:
            records = run.page(after, limit=READ_AT_ONCE)
            for chunk in _chunks(records, nonce=run.nonce):
                yield chunk
            after = records[-1].seq
        if closed:
            break
        try:
            async with asyncio.timeout(heartbeat_s):
                await run.tail.wait(after)
        except TimeoutError:
            yield HEARTBEAT
    yield event("bye", msgspec.json.encode({"nonce": run.nonce, "seq": after}))


def _chunks(records: list[Record], *, nonce: str) -> list[bytes]:
    chunks, current = list[bytes](), b""
    for record in records:
        current += event("record", msgspec.json.encode(record), id_=f"{nonce}:{record.seq}")
        if len(current) >= CHUNK_BYTES:
            chunks.append(current)
            current = b""
    return [*chunks, current] if current else chunks


def _position(request: Request, asked: EventsQuery) -> tuple[int, str | None]:
    """Where to go on: Last-Event-ID (`nonce:seq`) before the parameters."""
    last = request.headers.get("last-event-id")
    if not last:
        return asked.after, asked.nonce
    nonce, _, seq = last.rpartition(":")
    if not nonce or not seq.isdigit() or len(seq) > 18:
        raise BadRequest("Last-Event-ID must be <nonce>:<seq>")
    return int(seq), nonce
