"""Latest values: `GET /v1/gauges`, as JSON or as a stream that skips what nobody had time to see.

Invariant: at most a few events a second a stream, each the whole newest picture.
Not for: anything journalled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from daemon.api.answers import json_answer
from daemon.api.parameters import Query, query
from daemon.api.stream import HEARTBEAT, HEARTBEAT_S, EventStream, event
from daemon.gauges import Gauges

SPACING_S = 0.25


class GaugesQuery(Query, frozen=True, kw_only=True):
    """Parameters of `/v1/gauges`."""

    run: str = ""
    """Empty: the daemon's own only."""


async def gauges(request: Request) -> ASGIApp:
    """The values of one run and of the daemon."""
    asked = query(request, GaugesQuery)
    source: Gauges = request.app.state.supervisor.gauges
    if "text/event-stream" in request.headers.get("accept", ""):
        return EventStream(follow(source, asked.run))
    return json_answer({"run": asked.run, "gauges": source.read(asked.run)})


async def follow(source: Gauges, run: str, *, heartbeat_s: float = HEARTBEAT_S) -> AsyncGenerator[bytes, None]:
    """The newest values whenever they changed, until the daemon stops."""
    last: bytes | None = None
    while not source.changes.closed:
        seen = source.changes.seq
        values = msgspec.json.encode(source.read(run))
        if values != last:
            last = values
            yield event("gauges", values)
            await asyncio.sleep(SPACING_S)
        try:
            async with asyncio.timeout(heartbeat_s):
                await source.changes.wait(seen)
        except TimeoutError:
            yield HEARTBEAT
    yield event("bye", b"{}")
