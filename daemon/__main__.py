"""`python -m daemon`: the daemon in the foreground.

Prints one JSON line on stdout when it is ready (or why it is not), logs JSON lines to stderr.
Exit codes: 0 told to end, 2 usage, 3 the machine or the state directory is not fit or another daemon
runs.
Not for: starting one in the background (`daemon.launch`).
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from daemon import logs
from daemon.errors import BadRequest, DaemonError
from daemon.executors.local import judge_command
from daemon.lifecycle import Settings, serve
from state.errors import StateError
from state.files import state_dir

JUDGE_VARIABLE = "RATCHET_JUDGE"


def main(
    state: Annotated[Path | None, typer.Option("--state-dir", help="Where runs are kept.")] = None,
    socket: Annotated[Path | None, typer.Option("--socket", help="Unix socket to listen on.")] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge-command", envvar=JUDGE_VARIABLE, help="Another judge, for tests and other hosts."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when every run is at rest.")] = False,
    spool: Annotated[
        list[str] | None, typer.Option("--spool", help="DEVICE=DIRECTORY: its jobs go to the workers of that directory (may be repeated).")
    ] = None,
) -> None:
    """Drive runs and answer on a Unix socket until told to end."""
    logs.configure()
    command = shlex.split(judge) if judge else judge_command()
    raise typer.Exit(
        run(lambda: Settings(state_dir=state_dir(state), socket=socket, once=once, judge=command, spools=read_spools(spool or [])))
    )


def read_spools(words: Sequence[str]) -> dict[str, Path]:
    """`cuda:0=/mnt/spool` as a device and its directory; BadRequest for other words."""
    found = {}
    for word in words:
        device, equals, directory = word.partition("=")
        if not (device and equals and directory):
            raise BadRequest(f"--spool {word!r} is not DEVICE=DIRECTORY", "for example --spool cuda:0=/mnt/spool")
        found[device] = Path(directory).expanduser().absolute()
    return found


def run(settings: Callable[[], Settings]) -> int:
    """Live one daemon's life and return its exit code."""
    try:
        asyncio.run(serve(settings()))
    except (DaemonError, StateError) as error:
        _say_failure(error.code, error.message, error.hint)
        return 3 if error.code == 1 else error.code
    return 0


def _say_failure(code: int, message: str, hint: str) -> None:
    error = {"code": code, "message": message, "hint": hint}
    if not sys.stdout.isatty():  # whoever started us reads it; a person reads the line below
        sys.stdout.write(json.dumps({"ready": False, "error": error, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
    sys.stderr.write(f"ratchet daemon: {message}{f' ({hint})' if hint else ''}\n")


if __name__ == "__main__":
    typer.run(main)
