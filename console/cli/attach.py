"""`console` and `replay FILE`: the screens, live or on a journal, or the same facts in lines.

Invariant: without a terminal both tell the story in lines; Textual is loaded only when screens are
really shown.
Not for: the screens themselves (`console.app`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from console.cli import output
from console.cli.link import find_run, place_of, with_client
from console.cli.options import AsJson, NoMouse, Plain, Socket, StateDir
from console.plain import Teller, tell_all, tell_on
from console.views import summary
from console.views.doc import Line, line, text_of
from daemon.client import Client
from state.events import FORMAT_VERSION


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("console")(console)
    app.command("replay")(replay)


def console(
    named: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run id or its beginning.", show_default="the list of runs")
    ] = None,
    plain: Plain = False,
    no_mouse: NoMouse = False,
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Attach to the daemon. Leaving the console never ends a run; `q` says so."""
    place = place_of(state_dir, socket)
    if plain or as_json or not output.has_screens():
        asyncio.run(with_client(place, lambda client: _tell_live(client, named, as_json)))
        return
    from console.live import attach

    left = asyncio.run(attach(place.socket, named=named, mouse=not no_mouse))
    output.note(left)


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An attempts.jsonl, also one that is still growing; or its run's directory.")
    ],
    plain: Plain = False,
    follow: Annotated[bool, typer.Option("--follow", help="In lines: go on while the journal grows.")] = False,
    no_mouse: NoMouse = False,
    as_json: AsJson = False,
) -> None:
    """Show a journal again: the same screens, or the same story in lines. Needs no daemon and no torch."""
    from console.sources.journal import JournalSource

    source = JournalSource(file)
    if plain or as_json or not output.has_screens():
        asyncio.run(_tell_journal(source, follow=follow, as_json=as_json))
    else:
        from console.live import show_journal

        asyncio.run(show_journal(source, mouse=not no_mouse))
    if source.version > FORMAT_VERSION:
        output.note(f"written by a newer version (format {source.version}): what this one does not know is only counted; update ratchet")


async def _tell_journal(source: Any, *, follow: bool, as_json: bool) -> None:
    told: list[Line] = []
    teller = Teller(write=told.extend if as_json else output.write)
    await source.open()
    await tell_all(source, teller)
    if follow:
        await tell_on(source, teller)
    await source.close()
    found = teller.summary
    if as_json:
        output.write_json({**found.as_json(), "journal": str(source.path.absolute()), "story": [text_of(row) for row in told]})
    else:
        output.write([line(""), *summary.table(found)])


async def _tell_live(client: Client, named: str | None, as_json: bool) -> None:
    from console.sources.live import LiveSource

    run = (await find_run(client, named)).run
    source = LiveSource(client, run)
    if as_json:
        state = await source.open()
        output.write_json({"run": run, "state": msgspec.to_builtins(state)})
        return
    teller = Teller(write=output.write)
    await tell_on(source, teller)
    output.write([line(""), *summary.table(teller.summary)])
