"""Opening the screens: on a daemon, or on a journal.

Invariant: what is printed after the screens are gone says what goes on and how to come back.
Not for: the screens (`console.app`); importing this module loads Textual.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from console.app.app import Left, Manners, RatchetApp
from console.app.session import Session
from console.app.welcome import Welcome
from console.sources.journal import JournalSource
from console.sources.live import LiveControl, LiveSource
from daemon.client import Client, NotReachable


async def attach(socket: Path, *, named: str | None, mouse: bool) -> str:
    """Show a daemon's runs; `named` (an id or its beginning) is opened at once."""
    async with Client(socket) as client:
        run = await _named(client, named) if named is not None else None
        if run is None:
            await client.health()
        welcome = live_welcome(client, run)
        await show(welcome, manners=Manners(), mouse=mouse)
        try:
            await client.health()
        except NotReachable:
            return f"left; no daemon answers on {socket} any more. Its runs go on when it is started again: ratchet daemon"
    return f"detached; the daemon goes on. Come back with: ratchet console {run + ' ' if run else ''}--socket {shlex.quote(str(socket))}"


async def show_journal(source: JournalSource, *, mouse: bool) -> None:
    """Show a journal."""
    await source.open()

    def session(_: str) -> Session:
        return Session(source)

    await show(Welcome(session=session, place=source.place, live=False, run=""), manners=Manners(), mouse=mouse)


async def show(welcome: Welcome, *, manners: Manners, mouse: bool) -> Left:
    """Run the app until it is left."""
    app = RatchetApp(welcome, manners=manners)
    left = await app.run_async(mouse=mouse)
    if welcome.failure is not None:
        raise welcome.failure
    return left or "detached"


def live_welcome(client: Client, run: str | None) -> Welcome:
    """Build what a live console is opened on."""

    def session(name: str) -> Session:
        return Session(LiveSource(client, name), LiveControl(client, name))

    async def listed() -> list[dict[str, object]]:
        rows: list[dict[str, object]] = msgspec.to_builtins((await client.runs()).runs)
        return rows

    return Welcome(session=session, place=f"daemon {client.socket}", live=True, run=run, list_runs=listed)


async def _named(client: Client, named: str) -> str:
    from console.cli.link import find_run

    return (await find_run(client, named)).run
