"""What can go wrong with a problem, as one tree.

    ProblemError
      UnknownProblem   2  no such key or path; the hint names near ones
      BadProblem       2  a file that is not a problem: where, why, the mend
      ProblemChanged   3  bytes differ from the manifest's or from those fixed at the start of a run

Invariant: `message` says what was wrong and where, `hint` the mend; `code` is the exit code.
Not for: a candidate's faults. Those are statuses of a result, not errors.
"""

from __future__ import annotations


class ProblemError(Exception):
    """Base of every error of this package."""

    code: int = 2
    """Exit code of a command that ends with this error."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnknownProblem(ProblemError):
    """No problem has this key or path."""


class BadProblem(ProblemError):
    """The file or folder is not a problem in either format."""


class ProblemChanged(ProblemError):
    """A problem's bytes are not the ones that were fixed."""

    code = 3
