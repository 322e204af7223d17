"""`verdict show ID`: one A/B in full, from the daemon or from a journal.

Invariant: the same page as in the console.
Not for: accepting, vetoing or repeating a verdict.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from console.cli import output
from console.cli.link import find_run, place_of, with_client
from console.cli.options import AsJson, Socket, StateDir
from console.errors import UsageFault
from console.sources.base import Source, read
from console.views import gate, verdict
from console.views.doc import BLANK, heading
from console.views.records import as_struct
from daemon.client import Client
from evaluator.records import Result, encode
from state.events import JobFinished
from state.model import Experiment, RunState


def register(app: typer.Typer) -> None:
    """Add the family."""
    family = typer.Typer(help="A/B verdicts: show one.", no_args_is_help=True, rich_markup_mode=None)
    family.callback()(_family)
    family.command("show")(show)
    app.add_typer(family, name="verdict")


def _family() -> None:
    """Keep `show` a command of its own, though it is the only one."""


def show(
    key: Annotated[str, typer.Argument(metavar="ID", help="An experiment, or the request of its A/B.")],
    run: Annotated[str | None, typer.Option("--run", help="A run id or its beginning.", show_default="the latest")] = None,
    journal: Annotated[Path | None, typer.Option("--journal", help="A journal instead of the daemon.")] = None,
    state_dir: StateDir = None,
    socket: Socket = None,
    as_json: AsJson = False,
) -> None:
    """Show one A/B verdict: rho per case by both clocks, slot bias, floor, gate."""
    if journal is not None:
        asyncio.run(_from_journal(journal, key, as_json))
        return

    async def work(client: Client) -> None:
        from console.sources.live import LiveSource

        await _show(LiveSource(client, (await find_run(client, run)).run), key, as_json)

    asyncio.run(with_client(place_of(state_dir, socket), work))


async def _from_journal(path: Path, key: str, as_json: bool) -> None:
    from console.sources.journal import JournalSource

    source = JournalSource(path)
    try:
        await _show(source, key, as_json)
    finally:
        await source.close()


async def _show(source: Source, key: str, as_json: bool) -> None:
    state = await source.open()
    experiment = _find(state, key)
    result = await _result(source, experiment)
    if result.verdict is None:
        raise UsageFault(f"the A/B of {experiment.id} ended as {result.status.value}: {result.message}", "it has no verdict")
    width = min(output.width(), 140)
    rows = [heading(f"{experiment.id}  {experiment.title}"), *verdict.report(result.verdict, width=width), BLANK]
    checks, reason = experiment.gate_checks, experiment.gate_reason
    rows += gate.report(gate=state.gate, checks=checks, not_checked=experiment.not_checked, reason=reason, width=width)
    data = {"run": state.run, "experiment": experiment.id, "verdict": encode(result.verdict), "not_checked": experiment.not_checked}
    output.answer(rows, data, as_json=as_json)


def _find(state: RunState, key: str) -> Experiment:
    for experiment in state.experiments.values():
        if experiment.verdict is not None and key in (experiment.id, experiment.verdict.request):
            return experiment
    judged = ", ".join(e.id for e in state.experiments.values() if e.verdict is not None) or "none yet"
    raise UsageFault(f"run {state.run} has no A/B verdict called {key!r}", f"experiments with a verdict: {judged}")


async def _result(source: Source, experiment: Experiment) -> Result:
    assert experiment.verdict is not None
    record = await read(source, experiment.verdict.seq)
    event = as_struct(record, JobFinished) if record else None
    if event is None:
        raise UsageFault(f"record {experiment.verdict.seq} cannot be read", "was it written by a newer version?")
    return event.result
