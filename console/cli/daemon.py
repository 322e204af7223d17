"""`daemon`: run the daemon in the foreground, start one in the background, or ask one to end.

Invariant: ending a daemon loses nothing: its runs are taken up by its next start.
Not for: services.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated

import typer

from console.cli import output
from console.cli.link import Place, place_of, with_client
from console.cli.options import AsJson, Socket, StateDir
from console.errors import EnvironmentFault, UsageFault
from console.judge import PACKAGES
from console.views.doc import line
from daemon.client import NotReachable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("daemon")(daemon)


def daemon(
    background: Annotated[bool, typer.Option("--background", help="Return when it is ready.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Ask a running daemon to end; unfinished runs go on at its next start.")] = False,
    spool: Annotated[
        list[str] | None,
        typer.Option("--spool", metavar="DEVICE=DIR", help="Send this device's jobs to the workers of a directory; may be repeated."),
    ] = None,
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Run the daemon: in the foreground until Ctrl-C, or with --background."""
    place = place_of(state_dir, socket)
    if stop and spool:
        raise UsageFault("--stop takes no --spool", "leave it out")
    if background and stop:
        raise UsageFault("--background and --stop exclude each other", "choose one")
    if stop:
        asyncio.run(with_client(place, lambda client: client.shutdown()))
        output.answer([line(f"the daemon on {place.socket} ends")], {"stopping": True, "socket": str(place.socket)}, as_json=as_json)
    elif background:
        from daemon.launch import launch

        launched = launch(place.state_dir, socket=socket, spools=spool or ())
        words = line(f"daemon {launched.pid} is ready on {launched.socket}; log {launched.log}")
        output.answer([words], {"pid": launched.pid, "socket": str(launched.socket), "log": str(launched.log)}, as_json=as_json)
    else:
        from daemon.launch import spool_options

        asyncio.run(_refuse_second(place))
        command = [sys.executable, "-m", "daemon", "--state-dir", str(place.state_dir)]
        command += ["--socket", str(place.socket)] if socket else []
        command += spool_options(spool or ())
        os.chdir(PACKAGES)  # `-m` looks in the working directory first
        os.execv(sys.executable, command)


async def _refuse_second(place: Place) -> None:
    """Say in words, before anything starts, that a daemon runs here already; the daemon's own locks are what counts."""
    try:
        health = await with_client(place, lambda client: client.health())
    except NotReachable:
        return
    raise EnvironmentFault(
        f"another daemon (pid {health.pid}) listens on {place.socket}", "attach to it with `ratchet console`, or choose other paths"
    )
