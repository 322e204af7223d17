"""Options that several commands share.

Invariant: one name, one meaning and one help text for each.
Not for: options of a single command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, errors too.")]
StateDir = Annotated[Path | None, typer.Option("--state-dir", help="State directory of the daemon.", show_default="the user's")]
Socket = Annotated[Path | None, typer.Option("--socket", help="The daemon's socket.", show_default="where that daemon says it listens")]
Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of screens; also taken when there is no terminal.")]
NoMouse = Annotated[bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal.")]
Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help="A key such as builtin:scan, or the path of your own problem.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its beginning.")]
