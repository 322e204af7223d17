"""`state verify|rebuild FILE`: is a journal whole, and what does it say.

Invariant: reads only; a damaged journal is named by line and exits 1.
Not for: repairing (the daemon drops a torn last line when it opens a journal).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from console.cli import output
from console.cli.options import AsJson
from console.errors import UsageFault
from console.sources.paths import journal_path
from console.views import headline
from console.views.doc import Line, line, pair
from console.views.marks import Mark

Journal = Annotated[Path, typer.Argument(metavar="FILE", help="An attempts.jsonl, or the directory of its run.")]


def register(app: typer.Typer) -> None:
    """Add the family."""
    family = typer.Typer(help="Journals: verify one, rebuild the state from it.", no_args_is_help=True, rich_markup_mode=None)
    family.command("verify")(verify)
    family.command("rebuild")(rebuild)
    app.add_typer(family, name="state")


def verify(file: Journal, as_json: AsJson = False) -> None:
    """Check every line of a journal and that the state derives from it. Exits 1 when it does not hold."""
    from state.verification import verify as check

    found = check(journal_path(file))
    mark = Mark("✓", "whole", "good") if found.ok else Mark("✗", "not whole", "bad")
    rows: list[Line] = [line(mark.span, f"  {found.message}")]
    rows += [line(f"  {problem}") for problem in found.problems[1:]]
    rows += [pair("last hash", found.last_hash), pair("torn bytes", str(found.torn_bytes)), pair("checkpoint", found.checkpoint)]
    data = {
        "ok": found.ok,
        "journal": found.path,
        "run": found.run,
        "records": found.records,
        "last_hash": found.last_hash,
        "torn_bytes": found.torn_bytes,
        "kinds": found.kinds,
        "unknown_kinds": list(found.unknown_kinds),
        "checkpoint": found.checkpoint,
        "problems": [{"line": p.line, "why": p.why} for p in found.problems],
        "message": found.message,
    }
    output.answer(rows, data, as_json=as_json)
    raise typer.Exit(found.code)


def rebuild(file: Journal, as_json: AsJson = False) -> None:
    """Derive a run's state from its journal alone and print it."""
    from state.verification import encoded
    from state.verification import rebuild as derive

    state = derive(journal_path(file))
    if state.records == 0:
        raise UsageFault(f"{file} holds no complete record", "give the attempts.jsonl of a run")
    digest = hashlib.sha256(encoded(state)).hexdigest()
    rows = [*headline.headline(state), pair("records", str(state.records)), pair("state sha256", digest)]
    output.answer(rows, {"sha256": digest, "state": msgspec.to_builtins(state)}, as_json=as_json)
