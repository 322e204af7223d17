"""`run PROBLEM` and `status`: start a run on the daemon, and see how runs are.

Invariant: a run belongs to the daemon; these commands may end at any time without ending it.
Not for: screens (`console.cli.attach`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from console.cli import output
from console.cli.link import find_run, place_of, with_client
from console.cli.options import AsJson, Problem, Socket, StateDir
from console.plain import Teller, tell_on
from console.views import headline
from console.views import runs as runs_view
from console.views.doc import Line, line
from daemon.client import Client, Runs, Snapshot
from state.events import Record


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run")(run)
    app.command("status")(status)


def run(
    problem: Problem,
    model: Annotated[
        str | None, typer.Option("--model", help="Model client: scripted, replay, anthropic, ...", show_default="scripted")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", help="Session of the scripted client: a name or a file.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="What lists call the run.")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", help="A TOML file with [run], [evaluation] and [agents] tables.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Tell the run's story until it is at rest.")] = False,
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Start a run on PROBLEM. It belongs to the daemon and goes on when this command ends."""
    asked, played = _resolved(problem), _own_path(session)
    tables = _tables(settings)

    async def work(client: Client) -> tuple[str, int]:
        started = await client.start(asked, model=model, session=played, title=title, settings=tables)
        return started.run, started.seq

    place = place_of(state_dir, socket)
    name, seq = asyncio.run(with_client(place, work))
    output.answer(
        [line("started ", (name, "strong")), line(("attach with: ratchet console " + name, "muted"))],
        {"run": name, "seq": seq},
        as_json=as_json,
    )
    if follow:
        asyncio.run(with_client(place, lambda client: _follow(client, name, as_json)))


def status(
    named: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run id or its beginning.", show_default="all")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Tell the story of one run (the latest) as it happens; with --json, one record a line.")
    ] = False,
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Show the daemon's runs, or one run's headline; with --follow, its story."""
    place = place_of(state_dir, socket)
    if follow:

        async def tell(client: Client) -> None:
            await _follow(client, (await find_run(client, named)).run, as_json)

        asyncio.run(with_client(place, tell))
    elif named is None:
        listed = asyncio.run(with_client(place, lambda client: client.runs()))
        output.answer(_list(listed), msgspec.to_builtins(listed), as_json=as_json)
    else:

        async def look(client: Client) -> Snapshot:
            return await client.snapshot((await find_run(client, named)).run)

        snapshot = asyncio.run(with_client(place, look))
        data: dict[str, Any] = {"run": snapshot.run, "seq": snapshot.seq, "state": msgspec.to_builtins(snapshot.state)}
        output.answer(headline.headline(snapshot.state), data, as_json=as_json)


def _list(listed: Runs) -> list[Line]:
    width = output.width()
    rows = runs_view.rows(msgspec.to_builtins(listed.runs))
    lines = [runs_view.table_header(width=width), *(row.line(width=width) for row in rows)]
    lines += [line(("! ", "bad"), f"{d.run}: {d.message}", (f"  {d.hint}", "muted")) for d in listed.damaged]
    return lines if rows or listed.damaged else [line(("no runs yet: start one with `ratchet run PROBLEM`", "muted"))]


async def _follow(client: Client, run: str, as_json: bool) -> None:
    from console.sources.live import LiveSource

    source = LiveSource(client, run)
    await tell_on(source, _JsonLines(write=_nowhere) if as_json else Teller(write=output.write))


class _JsonLines(Teller):
    """Writes each record as it is, one a line, instead of telling it."""

    def take(self, records: Iterable[Record]) -> None:
        kept = list(records)
        super().take(kept)
        sys.stdout.writelines(msgspec.json.encode(record).decode() + "\n" for record in kept)
        sys.stdout.flush()


def _nowhere(rows: Iterable[Line]) -> None:
    """Write nothing."""


def _resolved(problem: str) -> str:
    """A key as it is; a path made absolute, for the daemon runs in another directory."""
    if ":" in problem or Path(problem).expanduser().is_absolute():
        return str(Path(problem).expanduser())
    from problems.registry import load

    return load(problem).key


def _own_path(session: str | None) -> str | None:
    """The name of a session as it is; a file of the user's made absolute."""
    path = Path(session or "").expanduser()
    return str(path.absolute()) if path.suffix and path.is_file() else session


def _tables(settings: Path | None) -> dict[str, Any]:
    if settings is None:
        return {}
    import tomllib

    from console.errors import UsageFault

    try:
        return tomllib.loads(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageFault(f"cannot read {settings}: {error}", "it must be a TOML file") from error
