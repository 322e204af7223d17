"""The typed client of the daemon's API: what the command line and the console speak through.

Cheap to import: neither torch nor a user interface nor a model SDK.
Invariant: every failure is a `DaemonError`: `NotReachable` (code 4) where no daemon answers, `Answered`
with the daemon's own code, message and hint where it refuses; a mutation carries an idempotency key, so
it may be sent again.
Not for: starting a daemon (`daemon.launch`).
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx2
import msgspec

from daemon import following
from daemon.answered import Answered, check
from daemon.errors import DaemonError, NotReachable, StreamReset
from daemon.following import Connection
from state.events import Record
from state.model import RunState
from state.rows import RunRow

__all__ = [
    "Answered",
    "Client",
    "Connection",
    "DaemonError",
    "Damaged",
    "Health",
    "NotReachable",
    "Page",
    "Runs",
    "Snapshot",
    "Started",
    "StreamReset",
]

T = TypeVar("T")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers."""

    pid: int
    version: str
    state_dir: str
    socket: str
    started_ts: str
    busy: bool
    """Whether any run is not at rest."""
    damaged: list[str] = []
    """Runs whose journal cannot be opened."""


class Damaged(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose journal cannot be opened, and why."""

    run: str
    message: str
    hint: str


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """Every run, the latest first."""

    runs: list[RunRow]
    damaged: list[Damaged] = []


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was made, or had been made by the same key."""

    run: str
    seq: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A run's state and where its stream goes on."""

    nonce: str
    seq: int
    hash: str
    """Of record `seq`: proves that a journal is the same one after the daemon was restarted."""
    run: str
    state: RunState


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some records and the `after` of the next page."""

    nonce: str
    records: list[Record]
    next: int


class Client:
    """One connection pool to the daemon on `socket`; use it as an async context."""

    def __init__(self, socket: Path | str, *, timeout_s: float = 30.0, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.socket = Path(socket)
        # No TLS on a Unix socket: `verify=False` only saves loading the certificates.
        chosen = transport or httpx2.AsyncHTTPTransport(uds=str(socket), verify=False, trust_env=False)
        timeout = httpx2.Timeout(timeout_s, connect=5.0)
        self._http = httpx2.AsyncClient(transport=chosen, base_url="http://daemon/v1/", timeout=timeout, trust_env=False)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def health(self) -> Health:
        """Who answers."""
        return _as(Health, await self._get("health"))

    async def runs(self) -> Runs:
        """Every run."""
        return _as(Runs, await self._get("runs"))

    async def start(
        self,
        problem: str,
        *,
        model: str | None = None,
        session: str | None = None,
        title: str | None = None,
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Started:
        """Make a run and start it."""
        asked = {"problem": problem, "model": model, "session": session, "title": title, "settings": dict(settings or {})}
        return _as(Started, await self._post("runs", asked, key=key))

    async def snapshot(self, run: str) -> Snapshot:
        """The whole state of one run."""
        return _as(Snapshot, await self._get("snapshot", run=run))

    async def page(self, run: str, *, after: int = 0, limit: int = 200, nonce: str | None = None) -> Page:
        """At most `limit` records after `after`."""
        given = {"nonce": nonce} if nonce else {}
        return _as(Page, await self._get("events", run=run, after=after, limit=limit, **given))

    def events(self, snapshot: Snapshot, *, status: following.Status = following.ignore) -> AsyncIterator[Record]:
        """Every record after a snapshot, for ever, across restarts of the daemon; none missed, none twice.

        `status` is told when the connection is lost and found again. Raises StreamReset where the journal is another one.
        """
        position = following.Position(run=snapshot.run, nonce=snapshot.nonce, seq=snapshot.seq, digest=snapshot.hash)
        return following.follow(self._http, position, status=status)

    async def gauges(self, run: str = "") -> dict[str, Any]:
        """The latest values of one run and of the daemon."""
        answer = msgspec.json.decode((await self._get("gauges", run=run)).content)
        values: dict[str, Any] = answer["gauges"]
        return values

    def gauge_stream(self, run: str = "", *, status: following.Status = following.ignore) -> AsyncIterator[dict[str, Any]]:
        """The latest values whenever they change, for ever."""
        return following.follow_gauges(self._http, run, status=status)

    async def pause(self, run: str, *, reason: str = "", key: str | None = None) -> int:
        """Let turns in flight finish and hold the next ones; returns the order's seq."""
        return await self._order(run, "pause", {"reason": reason}, key=key)

    async def resume(self, run: str, *, reason: str = "", key: str | None = None) -> int:
        """Go on; returns the order's seq."""
        return await self._order(run, "resume", {"reason": reason}, key=key)

    async def stop(self, run: str, *, reason: str = "", key: str | None = None) -> int:
        """End the search; returns the order's seq."""
        return await self._order(run, "stop", {"reason": reason}, key=key)

    async def nudge(self, run: str, text: str, *, category: str = "process", key: str | None = None) -> int:
        """Queue a message to the orchestrator; returns its seq."""
        return await self._order(run, "nudge", {"text": text, "category": category}, key=key)

    async def candidate(self, run: str, sha256: str) -> str:
        """The text of one candidate: untrusted."""
        return (await self._get(f"runs/{run}/candidates/{sha256}")).text

    async def shutdown(self, *, key: str | None = None) -> None:
        """Ask the daemon to end; unfinished runs are taken up by its next start."""
        await self._post("shutdown", {}, key=key)

    async def _order(self, run: str, what: str, asked: dict[str, Any], *, key: str | None) -> int:
        answer = msgspec.json.decode((await self._post(f"runs/{run}/{what}", asked, key=key)).content)
        return int(answer["seq"])

    async def _get(self, path: str, **parameters: str | int) -> httpx2.Response:
        return await self._send(self._http.build_request("GET", path, params=parameters))

    async def _post(self, path: str, asked: dict[str, Any], *, key: str | None) -> httpx2.Response:
        content = msgspec.json.encode({**asked, "key": key or uuid.uuid4().hex})
        return await self._send(self._http.build_request("POST", path, content=content, headers={"content-type": "application/json"}))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._http.send(request)
        except httpx2.TransportError as error:
            raise following.unreachable(str(self.socket), error) from error
        check(response.status_code, response.content)
        return response


def _as(shape: type[T], response: httpx2.Response) -> T:
    try:
        return msgspec.json.decode(response.content, type=shape)
    except msgspec.DecodeError as error:
        raise DaemonError(f"the daemon's answer cannot be read: {error}", "are daemon and client of the same version?") from error
