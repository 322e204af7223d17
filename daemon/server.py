"""uvicorn, embedded: our socket, our signals, and the kernel's word for who is at the other end.

Invariant: a peer whose uid is not allowed is cut off before its first request; the server takes no
signal of its own; `serve` returns within its grace after it was told to.
Not for: binding (`daemon.listener`) or what is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.listener import allowed, peer_of

GRACE_S = 3
"""Seconds that open requests get after the streams have said goodbye."""

_log = structlog.get_logger()


class PeerProtocol(H11Protocol):
    """HTTP over a Unix socket, with the peer's credentials as the request's client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or cut it off."""
        super().connection_made(transport)
        raw: Any = transport.get_extra_info("socket")
        try:
            peer = peer_of(raw)
        except OSError:
            transport.abort()
            return
        if not allowed(peer):
            _log.warning("peer refused", uid=peer.uid, pid=peer.pid)
            transport.abort()
            return
        self.client = (f"uid={peer.uid},gid={peer.gid}", peer.pid)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the daemon."""
        yield


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, bound: socket.socket) -> AsyncIterator[None]:
    """Serve `app` on a bound socket while inside."""
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        ws="none",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[bound]), name="server")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait({task})
