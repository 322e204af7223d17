"""Runs: list, start, snapshot, control, candidates.

Invariant: a mutation answers the seq of its effect, which is durable by then; a GET changes nothing.
Not for: the stream of records (`daemon.api.events`).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from daemon.api.answers import json_answer
from daemon.api.parameters import Body, Query, body, no_parameters, order, query
from daemon.creation import NewRun
from daemon.errors import NotFound
from daemon.supervisor import Charge, Supervisor
from state.errors import BadName, Unreadable
from state.files import read_candidate

SNAPSHOT_VERSION = 1


class RunQuery(Query, frozen=True, kw_only=True):
    """Names one run."""

    run: str


class StartBody(Body, frozen=True, kw_only=True):
    """Body of `POST /v1/runs`."""

    problem: str
    model: str | None = None
    session: str | None = None
    title: str | None = None
    settings: dict[str, Any] = {}


class ControlBody(Body, frozen=True, kw_only=True):
    """Body of pause, resume and stop."""

    reason: str = ""


class NudgeBody(Body, frozen=True, kw_only=True):
    """Body of a nudge."""

    text: str
    category: str = "process"


async def list_runs(request: Request) -> Response:
    """Every run, the latest first, and the ones that cannot be opened."""
    no_parameters(request)
    supervisor = _supervisor(request)
    rows = await supervisor.list()
    damaged = [{"run": run, "message": error.message, "hint": error.hint} for run, error in supervisor.damaged.items()]
    return json_answer({"runs": rows, "damaged": damaged})


async def start_run(request: Request) -> Response:
    """Make a run and start it."""
    asked = await body(request, StartBody)
    new = NewRun(problem=asked.problem, model=asked.model, session=asked.session, title=asked.title, settings=asked.settings)
    run, seq = await _supervisor(request).create(new, order(request, asked.key))
    return json_answer({"run": run, "seq": seq}, status=201)


async def snapshot(request: Request) -> Response:
    """The whole state of one run, and where its stream goes on."""
    run = (await _supervisor(request).get(query(request, RunQuery).run)).run
    seq = run.state.seq
    position = {"nonce": run.nonce, "seq": seq, "hash": run.hash_at(seq) or ""}
    return json_answer({"version": SNAPSHOT_VERSION, **position, "run": run.id, "state": run.state})


async def pause(request: Request) -> Response:
    """Let turns in flight finish, hold the next ones."""
    asked, charge = await body(request, ControlBody), await _named(request)
    return _effect(await charge.control.pause(order(request, asked.key), reason=asked.reason))


async def resume(request: Request) -> Response:
    """Go on."""
    asked, charge = await body(request, ControlBody), await _named(request)
    return _effect(await charge.control.resume(order(request, asked.key), reason=asked.reason))


async def stop(request: Request) -> Response:
    """End the search and its jobs."""
    asked, charge = await body(request, ControlBody), await _named(request)
    return _effect(await charge.control.stop(order(request, asked.key), reason=asked.reason))


async def nudge(request: Request) -> Response:
    """Queue a message to the orchestrator."""
    asked, charge = await body(request, NudgeBody), await _named(request)
    return _effect(await charge.control.nudge(order(request, asked.key), text=asked.text, category=asked.category))


async def candidate(request: Request) -> Response:
    """The text of one candidate, as it is: untrusted."""
    no_parameters(request)
    charge = await _named(request)
    try:
        text = read_candidate(charge.run.files, request.path_params["sha256"])
    except (BadName, Unreadable) as error:
        raise NotFound(error.message, error.hint) from error
    return PlainTextResponse(text)


def _supervisor(request: Request) -> Supervisor:
    supervisor: Supervisor = request.app.state.supervisor
    return supervisor


async def _named(request: Request) -> Charge:
    return await _supervisor(request).get(request.path_params["run"])


def _effect(seq: int) -> Response:
    return json_answer({"seq": seq})
