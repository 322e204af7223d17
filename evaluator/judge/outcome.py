"""How a measurement ends other than with a figure: a status, in words.

Invariant: whatever a candidate does becomes a `Refusal` of the candidate; whatever the reference's
side or this machine does becomes an `Infrastructure` failure, which is never charged to a model.
"""

from __future__ import annotations

from evaluator.records import Status


class Refusal(Exception):
    """The candidate is refused with a status and a reason."""

    def __init__(self, status: Status, message: str, *, log: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.log = log
        self.hint = hint


class Infrastructure(Exception):
    """The measurement could not be made: `evaluator_error`."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.log = log
