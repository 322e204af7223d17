"""What can go wrong with what is remembered.

Invariant: every error carries the process exit code of DESIGN.md, one or two lines of message, and a
hint with the mend, so that the command line and the console print them without a traceback.
Not for: bugs; those stay ordinary exceptions.

    StateError
    ├── Damaged          the journal was edited or broken; names the line
    ├── NewerVersion     written by a newer Ratchet
    ├── Busy             another process writes this journal
    ├── WrongRun         the journal belongs to another run
    ├── Unreadable       no such file, or not one that can be read
    ├── NotWritable      read-only directory, full disk, ...
    ├── BadRecord        what was to be journalled is not a valid record
    ├── Replaced         a followed file was swapped or cut behind its reader
    ├── BadName          a run or candidate name that is not one
    ├── BadPrediction    a prediction that cannot be frozen
    ├── WorldModelError  the world model does not parse, or a change of it is refused
    └── LineLimit        the world model is too long: archive and distil
"""

from __future__ import annotations

from pathlib import Path


class StateError(Exception):
    """Base of every error of this package."""

    code = 1
    """Exit code of a command that ends with it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Damaged(StateError):
    """A journal whose lines are not the ones that were written."""

    def __init__(self, line: int, why: str, *, path: Path | str = "") -> None:
        where = f"{path}, line {line}" if path else f"line {line}"
        intact = f"restore it from a copy; lines 1 to {line - 1} are intact"
        none_intact = "is it a run's attempts.jsonl? then restore it from a copy"
        super().__init__(f"the journal is damaged at {where}: {why}", hint=intact if line > 1 else none_intact)
        self.line = line
        self.why = why


class NewerVersion(StateError):
    """State written by a newer version than this one may write to."""

    code = 3

    def __init__(self, what: str, *, found: int, known: int) -> None:
        super().__init__(
            f"{what} has format version {found}; this Ratchet writes version {known}",
            hint="upgrade Ratchet, or open it read-only (`ratchet replay`, `ratchet state verify`)",
        )


class Busy(StateError):
    """Another process holds the journal for writing."""

    code = 3


class WrongRun(StateError):
    """The journal belongs to another run."""

    code = 2


class Unreadable(StateError):
    """A file that is missing or cannot be read."""

    code = 2


class NotWritable(StateError):
    """A place where nothing can be written."""

    code = 3

    def __init__(self, path: Path | str, error: OSError) -> None:
        super().__init__(
            f"cannot write {path}: {error.strerror or error}",
            hint="make the directory writable and check free space, or choose another with --state-dir DIR",
        )
        self.errno = error.errno


class BadRecord(StateError):
    """Something that must not be journalled: an unknown shape, a non-finite number, too many bytes."""

    code = 2


class Replaced(StateError):
    """A followed journal was replaced or cut short."""


class BadName(StateError):
    """A name that cannot be a run or a candidate."""

    code = 2


class BadPrediction(StateError):
    """A prediction that cannot be frozen; `problems` lists every reason."""

    code = 2

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(
            f"the prediction is not valid: {'; '.join(problems)}",
            hint="give every case you expect to move an interval 0 < low < high of t_champion/t_candidate, a level and a basis",
        )
        self.problems = problems


class WorldModelError(StateError):
    """WORLD_MODEL.md does not parse, or a change of it is refused; `line` is None for a change."""

    def __init__(self, why: str, *, line: int | None = None, hint: str = "") -> None:
        super().__init__(f"WORLD_MODEL.md, line {line}: {why}" if line else f"world model: {why}", hint=hint)
        self.line = line
        self.why = why


class LineLimit(StateError):
    """The world model is longer than it may be."""

    def __init__(self, lines: int, limit: int) -> None:
        super().__init__(
            f"the world model would have {lines} lines; the limit is {limit}",
            hint="archive the graveyard and finished notes and distil what is left, then repeat the change",
        )
        self.lines = lines
        self.limit = limit
