"""All commands in one Typer application.

Invariant: Typer's and Rich's own boxes are off; help texts are plain.
Not for: a command's work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from console.cli import attach, control, daemon, demo, doctor, judge, problems, runs, state, verdict

HELP = """Autonomous research on GPU kernels that only ever locks in what a protected evaluator has proven.

Start with `ratchet demo`: a real optimisation on this machine's CPU, with no key and no GPU.
"""
EPILOG = "Exit codes: 0 done, 1 a negative verdict, 2 usage, 3 environment, 4 no daemon, 130 interrupted. `--debug` shows tracebacks."


def command() -> Callable[..., Any]:
    """Build the whole command."""
    app = typer.Typer(
        name="ratchet",
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for family in (demo, runs, daemon, attach, control, judge, problems, state, verdict, doctor):
        family.register(app)
    return typer.main.get_command(app)


def _show_version(asked: bool) -> None:
    if not asked:
        return
    import importlib.metadata

    try:
        typer.echo(f"ratchet {importlib.metadata.version('kernel-ratchet')}")
    except importlib.metadata.PackageNotFoundError:
        typer.echo("ratchet (not installed)")
    raise typer.Exit(0)


def _root(
    _: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)] = False,
) -> None:
    """Options of the program itself."""
