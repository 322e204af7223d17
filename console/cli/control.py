"""`pause`, `resume`, `stop`, `nudge` RUN: what an operator asks of a run.

Invariant: each answers the seq of its record, which is durable by then; what was asked for and what is
in force are different things, and the answer says which it is.
Not for: waiting until it is in force (`status --follow`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from console.cli import output
from console.cli.link import Place, find_run, place_of, with_client
from console.cli.options import AsJson, Run, Socket, StateDir
from console.views.doc import line
from daemon.client import Client

Asked = Callable[[Client, str], Awaitable[int]]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, stop, nudge):
        app.command(command.__name__)(command)


def pause(run: Run, state_dir: StateDir = None, socket: Socket = None, as_json: AsJson = False) -> None:
    """Pause a run after what is in flight."""
    _ask("pause", run, place_of(state_dir, socket), lambda client, key: client.pause(key), as_json)


def resume(run: Run, state_dir: StateDir = None, socket: Socket = None, as_json: AsJson = False) -> None:
    """Let a paused run go on."""
    _ask("resume", run, place_of(state_dir, socket), lambda client, key: client.resume(key), as_json)


def stop(run: Run, state_dir: StateDir = None, socket: Socket = None, as_json: AsJson = False) -> None:
    """End a run; its journal stays and the daemon goes on."""
    _ask("stop", run, place_of(state_dir, socket), lambda client, key: client.stop(key), as_json)


def nudge(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the orchestrator should know.")],
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Queue a message to a run's orchestrator."""
    _ask("nudge", run, place_of(state_dir, socket), lambda client, key: client.nudge(key, text), as_json)


def _ask(what: str, named: str, place: Place, asked: Asked, as_json: bool) -> None:
    async def work(client: Client) -> tuple[str, int]:
        row = await find_run(client, named)
        return row.run, await asked(client, row.run)

    run, seq = asyncio.run(with_client(place, work))
    output.answer([line(f"{run}: {what} requested, record {seq}")], {"run": run, "requested": what, "seq": seq}, as_json=as_json)
