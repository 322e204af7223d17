"""Errors of the console: what was wrong, where, and the mend.

    ConsoleError            code, message, hint
    ├── NegativeVerdict     1  a verdict that is not what the command asks for
    ├── UsageFault          2  a file, a name or an option that cannot be used
    └── EnvironmentFault    3  something this machine lacks

Invariant: whatever reaches a person is one or two lines. Every package raises errors of the same
shape; `explain` reads that shape without importing them.
Not for: printing (`console.cli.output`) or deciding exit codes of results (`console.views.outcome`).
"""

from __future__ import annotations

from dataclasses import dataclass


class ConsoleError(Exception):
    """Base of what the console raises; also what it shows."""

    code: int = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NegativeVerdict(ConsoleError):
    """The answer is no (exit 1)."""

    code = 1


class UsageFault(ConsoleError):
    """The command cannot be carried out as it was given (exit 2)."""

    code = 2


class EnvironmentFault(ConsoleError):
    """This machine lacks something the command needs (exit 3)."""

    code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An error as a person sees it."""

    code: int
    message: str
    hint: str = ""


def explain(error: BaseException) -> Explained | None:
    """Read `code`, `message` and `hint` off an error of any of our packages; None for a bug."""
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if isinstance(code, int) and isinstance(message, str):
        return Explained(code=code, message=message, hint=str(getattr(error, "hint", "") or ""))
    if isinstance(error, PermissionError):
        return Explained(code=3, message=f"no permission: {error.filename or error}", hint="check who owns it, or name another place")
    return None
