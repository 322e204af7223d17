"""`doctor`: what this machine has and lacks.

Invariant: exits 3 when something needed is missing, and every such line carries its mend.
Not for: the checks themselves (`console.doctor`).
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from console.cli import output
from console.cli.options import AsJson, Socket, StateDir
from console.views.doc import Line, line
from console.views.marks import Mark


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(state_dir: StateDir = None, socket: Socket = None, as_json: AsJson = False) -> None:
    """Check this machine: interpreter, torch, compiler, sandbox, cores, directories, package names.

    Exits 3 when something needed is missing; each line says how to mend it.
    """
    from console.cli.link import place_of
    from console.doctor import Finding, examine

    place = place_of(state_dir, socket)
    found = examine(place.state_dir, place.socket)
    missing = [f for f in found if f.needed and not f.ok]

    def row(finding: Finding) -> list[Line]:
        mark = Mark("✓", "ok", "good") if finding.ok else Mark("✗", "missing", "bad") if finding.needed else Mark("·", "absent", "muted")
        rows = [line(mark.span, " " * (10 - len(mark.text)), (f"{finding.name:<16} ", "strong"), finding.detail)]
        return rows if finding.ok else [*rows, line((" " * 11 + ("mend: " if finding.needed else "for: ") + finding.mend, "accent"))]

    rows = [r for finding in found for r in row(finding)]
    count = len(missing)
    rows.append(line("ready" if not missing else f"{count} needed part{'s are' if count > 1 else ' is'} missing"))
    output.answer(rows, {"ok": not missing, "findings": [asdict(f) for f in found]}, as_json=as_json)
    raise typer.Exit(3 if missing else 0)
