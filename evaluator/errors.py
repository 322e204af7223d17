"""Errors a person can mend: what was wrong, and how to mend it.

    EvaluatorError            base; `code` is the process's exit code
    ├── UsageError        2   unknown option, unreadable or oversized file
    └── EnvironmentFault  3   no sandbox, no compiler, too few cores, not qualified

A candidate's own failure is never an exception of these: it is a status of a result.
"""

from __future__ import annotations


class EvaluatorError(Exception):
    """Base: one clear message with its mend."""

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(EvaluatorError):
    """What was asked makes no sense."""

    code = 2


class EnvironmentFault(EvaluatorError):
    """This machine lacks something that evaluation needs."""

    code = 3
