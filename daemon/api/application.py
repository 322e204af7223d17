"""The ASGI application: every endpoint, and nothing that decides.

Invariant: a GET never changes anything; a mutation is a POST whose parameters are strict.
Not for: sockets and signals (`daemon.server`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.api import events, gauges, runs
from daemon.api.answers import OWN_ERRORS, json_answer, on_bug, on_http_error, on_own_error
from daemon.api.parameters import Body, body, no_parameters
from daemon.supervisor import Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this daemon is."""

    pid: int
    version: str
    state_dir: str
    socket: str
    started_ts: str


class ShutdownBody(Body, frozen=True, kw_only=True):
    """Body of `POST /v1/shutdown`."""


def application(supervisor: Supervisor, *, identity: Identity, shut_down: Callable[[], None]) -> Starlette:
    """The API over one supervisor; `shut_down` asks the process to end."""
    app = Starlette(
        routes=[
            Route("/v1/health", _health, methods=["GET"]),
            Route("/v1/runs", runs.list_runs, methods=["GET"]),
            Route("/v1/runs", runs.start_run, methods=["POST"]),
            Route("/v1/snapshot", runs.snapshot, methods=["GET"]),
            Route("/v1/events", events.events, methods=["GET"]),
            Route("/v1/gauges", gauges.gauges, methods=["GET"]),
            Route("/v1/runs/{run}/pause", runs.pause, methods=["POST"]),
            Route("/v1/runs/{run}/resume", runs.resume, methods=["POST"]),
            Route("/v1/runs/{run}/stop", runs.stop, methods=["POST"]),
            Route("/v1/runs/{run}/nudge", runs.nudge, methods=["POST"]),
            Route("/v1/runs/{run}/candidates/{sha256}", runs.candidate, methods=["GET"]),
            Route("/v1/shutdown", _shutdown, methods=["POST"]),
        ],
        exception_handlers={HTTPException: on_http_error, Exception: on_bug, **dict.fromkeys(OWN_ERRORS, on_own_error)},
    )
    app.state.supervisor = supervisor
    app.state.identity = identity
    app.state.shut_down = shut_down
    return app


async def _health(request: Request) -> Response:
    no_parameters(request)
    supervisor: Supervisor = request.app.state.supervisor
    identity = asdict(request.app.state.identity)
    return json_answer({"ready": True, **identity, "busy": supervisor.busy, "damaged": sorted(supervisor.damaged)})


async def _shutdown(request: Request) -> Response:
    await body(request, ShutdownBody)
    request.app.state.shut_down()
    return json_answer({"stopping": True}, status=202)
