"""Server-sent events over ASGI.

Invariant: a peer that is gone or does not read ends its own stream and nobody else's: something real is
awaited after every chunk, a disconnect ends the pump, and a send that takes too long is given up.
Not for: what is streamed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.types import Message, Receive, Scope, Send

HEARTBEAT_S = 15.0
"""Longest silence on a stream."""

SEND_LIMIT_S = 10.0
"""Longest a peer may take to accept one chunk; it can come back with Last-Event-ID."""

HEARTBEAT = b": still here\n\n"

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def event(name: str, data: bytes, *, id_: str = "") -> bytes:
    """One event; `data` is one line (JSON is)."""
    identity = f"id: {id_}\n".encode() if id_ else b""
    return b"%sevent: %s\ndata: %s\n\n" % (identity, name.encode(), data)


class EventStream:
    """An ASGI application that sends the chunks of one generator."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the generator ends or the peer is gone."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        pump = asyncio.create_task(self._pump(send), name="event-stream")
        gone = asyncio.create_task(_disconnected(receive), name="event-stream-peer")
        try:
            await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pump.cancel()
            gone.cancel()
            await asyncio.wait({pump, gone})
            await self._chunks.aclose()
        if not pump.cancelled() and (error := pump.exception()) is not None and not isinstance(error, TimeoutError):
            raise error

    async def _pump(self, send: Send) -> None:
        async for chunk in self._chunks:
            await _send(send, {"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)
        await _send(send, {"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, message: Message) -> None:
    async with asyncio.timeout(SEND_LIMIT_S):
        await send(message)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
