"""Answers: JSON, and errors as JSON with code, message and hint.

Invariant: every error of ours becomes `{"error": {"code", "kind", "message", "hint"}}`; a bug becomes
status 500 with nothing of its insides, and its traceback in the log.
Not for: streams (`daemon.api.stream`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agents.errors import AgentsError
from daemon.errors import BadRequest, DaemonError, EnvironmentFault, NotFound, Refused, StreamReset
from problems.errors import ProblemError
from state.errors import StateError

_log = structlog.get_logger()

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (BadRequest, 400),
    (Refused, 409),
    (StreamReset, 410),
    (EnvironmentFault, 503),
)
_STATUS_OF_CODE = {1: 409, 2: 400, 3: 503}


def json_answer(content: Any, *, status: int = 200) -> Response:
    """`content` as JSON; structs and builtins alike."""
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")


def error_answer(error: Exception, *, more: Mapping[str, Any] | None = None) -> Response:
    """One of our errors as JSON; `more` stands beside `error`."""
    code = int(getattr(error, "code", 1))
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), _STATUS_OF_CODE.get(code, 409))
    body = {
        "code": code,
        "kind": type(error).__name__,
        "message": str(getattr(error, "message", error)),
        "hint": str(getattr(error, "hint", "")),
    }
    return json_answer({"error": body, **(more or {})}, status=status)


async def on_own_error(_request: Request, error: Exception) -> Response:
    """Handler of every error with code, message and hint."""
    return error_answer(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Handler of a route or a method that does not exist."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    what = "there is no such endpoint" if status == 404 else "this endpoint does not take that method"
    message = f"{what}: {request.method} {request.url.path[:200]}"
    return json_answer({"error": {"code": 2, "kind": "NoSuchEndpoint", "message": message, "hint": ""}}, status=status)


async def on_bug(request: Request, error: Exception) -> Response:
    """Handler of everything else."""
    _log.error("bug in a request", method=request.method, path=request.url.path, exc_info=error)
    body = {"code": 1, "kind": "InternalError", "message": "the daemon failed on this request", "hint": "see its log"}
    return json_answer({"error": body}, status=500)


OWN_ERRORS: tuple[type[Exception], ...] = (DaemonError, StateError, ProblemError, AgentsError)
