"""`demo`: watch a real optimisation on this machine, with screens or in lines.

Invariant: the last lines name the journal and the command that shows it again; `--json` prints one
object last; a run that failed ends with 1, an expected promotion that was not resolved does not.
Not for: starting its daemon and its run (`console.demo`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from console import demo as engine
from console import doctor
from console.cli import output
from console.cli.options import AsJson, NoMouse, Plain
from console.cli.program import program
from console.judge import JUDGE_VARIABLE
from console.plain import AT_REST, Teller, tell_on
from console.sources.base import Batch, Source
from console.views import headline, summary
from console.views.doc import Line, line
from daemon.client import Client, NotReachable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    state_dir: Annotated[
        Path | None, typer.Option("--state-dir", help="Directory of the demo; one that was begun goes on.", show_default="a fresh one")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the demo in --state-dir (it does so anyway).")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the demo's daemon running when its run is finished.")] = False,
    plain: Plain = False,
    no_mouse: NoMouse = False,
    as_json: AsJson = False,
) -> None:
    """Run a real optimisation on the CPU, with no key and no GPU, and watch it.

    Only the agents' text is scripted: every build, check, timing, verdict, refusal and promotion is
    computed by the evaluator while you watch.
    """
    if resume and state_dir is None:
        raise typer.BadParameter("--resume needs the --state-dir of the demo to go on with")
    if JUDGE_VARIABLE not in os.environ:  # another judge has needs of its own
        doctor.require_judge()
    started = time.monotonic()
    found = engine.start(state_dir or engine.new_state_dir())
    in_lines = plain or as_json or not output.has_screens()
    try:
        run = asyncio.run(_watch(found, keep=keep, plain=in_lines, mouse=not no_mouse, as_json=as_json))
    except asyncio.CancelledError as error:
        raise typer.Exit(128 + signal.SIGTERM) from error
    _close(found, run, wall_s=time.monotonic() - started, as_json=as_json)


async def _watch(found: engine.Demo, *, keep: bool, plain: bool, mouse: bool, as_json: bool) -> str:
    async with Client(found.socket) as client:
        run = await engine.begin(client)
        if plain:
            await _in_lines(found, client, run, as_json=as_json)
            keep = keep or found.pid is None  # the daemon of whoever began it
        elif not await _on_screens(found, client, run, mouse=mouse):
            output.note(f"detached: the demo goes on. Come back: ratchet console --state-dir {found.state_dir}")
            output.note(f"end it: ratchet daemon --stop --state-dir {found.state_dir}")
            return run
        if not keep:
            await engine.end(found, client)
    return run


async def _in_lines(found: engine.Demo, client: Client, run: str, *, as_json: bool) -> None:
    from console.sources.live import LiveSource

    stream = sys.stderr if as_json else sys.stdout

    def write(rows: Iterable[Line]) -> None:
        output.write(rows, stream=stream)

    ends = "Ctrl-C leaves it running" if found.pid is None else "Ctrl-C stops the demo's daemon, the journal stays"
    write([line((f"state directory {found.state_dir}; {ends}", "muted"))])
    source = _Watched(LiveSource(client, run), found)
    notes = asyncio.create_task(_note_waits(client, run))
    _end_with_terminal()
    try:
        await tell_on(source, Teller(write=write))
    except (asyncio.CancelledError, BrokenPipeError):  # a signal, or nobody reads us any more
        if found.pid is None:
            output.note("left: the demo goes on in the daemon that was there before")
            raise
        output.note("ended early: stopping the demo's daemon; the journal stays")
        await engine.end(found, client)
        output.note(f"go on with: ratchet demo --state-dir {found.state_dir}")
        raise
    finally:
        notes.cancel()
        await asyncio.wait({notes})


def _end_with_terminal() -> None:
    """Treat a termination or a closed terminal as Ctrl-C, so that no daemon is left behind unseen."""
    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)


async def _note_waits(client: Client, run: str) -> None:
    """Say on standard error what the run waits for: gauges are no records, so they are no part of the story."""
    said: list[str] = []
    async with contextlib.aclosing(client.gauge_stream(run)) as stream:  # type: ignore[type-var]
        async for values in stream:
            waiting = headline.waits(headline.gauges_of(values))
            for words in waiting:
                if words not in said:
                    output.note(f"waiting: {words}")
            said = waiting


async def _on_screens(found: engine.Demo, client: Client, run: str, *, mouse: bool) -> bool:
    """Return whether the demo's daemon is to be stopped."""
    from console.app.app import Manners
    from console.live import live_welcome, show

    left = await show(live_welcome(client, run), manners=Manners(demo=True), mouse=mouse)
    try:
        at_rest = (await client.snapshot(run)).state.status in AT_REST
        return left == "stop" or (at_rest and found.pid is not None)
    except NotReachable as error:
        raise engine.stopped(found) from error


def _close(found: engine.Demo, run: str, *, wall_s: float, as_json: bool) -> None:
    journal = found.journal(run)
    came_to = asyncio.run(engine.summary_of(journal))
    output.answer([line(""), *summary.table(came_to)], _object(came_to, journal, wall_s), as_json=as_json)
    if not as_json:
        output.write(
            [line(("journal ", "muted"), str(journal)), line(("replay  ", "muted"), f"{program()} replay {shlex.quote(str(journal))}")]
        )
        if came_to.status not in AT_REST:
            output.write([line(("go on   ", "muted"), f"{program()} demo --state-dir {shlex.quote(str(found.state_dir))}")])
    if came_to.status == "failed":
        raise typer.Exit(1)


def _object(came_to: summary.Summary, journal: Path, wall_s: float) -> dict[str, Any]:
    return {**came_to.as_json(), "journal": str(journal), "wall_s": round(wall_s, 3)}


class _Watched:
    """A live source that ends with a clear error when the demo's daemon is gone."""

    def __init__(self, source: Source, found: engine.Demo) -> None:
        self._source = source
        self._found = found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def follow(self, after: int) -> Any:
        async with contextlib.aclosing(self._source.follow(after)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                self._look(batch)
                yield batch

    def _look(self, batch: Batch) -> None:
        if batch.link is not None and not batch.link.connected and not self._found.alive:
            raise engine.stopped(self._found)
