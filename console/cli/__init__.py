"""The command line: `ratchet`.

Invariant: importing it is quick and loads neither torch nor Textual; every command works without a
terminal; errors are one or two lines with the mend and end with the exit codes of the design page.
Not for: what the commands do (the modules of this package, one a family).
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from typing import Any

import typer

from console.cli import assembly, output
from console.errors import Explained, explain

INTERRUPTED = 130
BUG = 70
"""Exit code of an error that nobody foresaw (sysexits' EX_SOFTWARE)."""


def main() -> None:
    """Run the command that was typed and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments or bool(os.environ.get("RATCHET_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"] or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 gets question marks, never a crash
    try:
        code = _code(assembly.command()(arguments, prog_name="ratchet", standalone_mode=False))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit) as left:
        # The parser turns a broken pipe into an exit of its own.
        if isinstance(left, SystemExit) and not isinstance(left.__context__, BrokenPipeError):
            raise
        _leave_output()  # whoever read us is gone
        code = 0
    except typer.Abort:
        code = INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        full = _full(error)
        if full is not None:
            _leave_output()
        found = full or _usage(error) or explain(error) or _bug(error)
        output.error(found, as_json="--json" in arguments)
        code = found.code
    if code == INTERRUPTED:
        output.note("interrupted: what was running for this command has been ended")
    return code


def _code(returned: Any) -> int:
    return returned if isinstance(returned, int) and not isinstance(returned, bool) else 0


def _usage(error: Exception) -> Explained | None:
    """Read the command-line parser's own errors; every one of them is a usage error."""
    words = getattr(error, "format_message", None)
    if words is None or not hasattr(error, "exit_code"):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ratchet"
    return Explained(code=2, message=words(), hint=f"see `{path} --help`")


def _full(error: Exception) -> Explained | None:
    """Read an output that takes no more."""
    if not isinstance(error, OSError) or error.errno != errno.ENOSPC or error.filename is not None:
        return None
    return Explained(code=3, message="the output cannot be written: no space is left where it goes", hint="make room there")


def _leave_output() -> None:
    """Write no more to standard output; keeps the interpreter's own flush at exit quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> Explained:
    kind = type(error).__name__
    return Explained(
        code=BUG, message=f"this is a bug in ratchet: {kind}: {error}", hint="run it again with --debug and report what it prints"
    )
