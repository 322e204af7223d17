"""The daemon's refusals, as the client raises them.

Invariant: code, message and hint are the daemon's own words. Not for: failures to reach it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from daemon.errors import DaemonError


class Answered(DaemonError):
    """The daemon answered with an error."""

    def __init__(self, message: str, hint: str = "", *, code: int, kind: str, status: int, more: dict[str, Any]) -> None:
        super().__init__(message, hint)
        self.code = code
        self.kind = kind
        """Type of the error on the daemon's side."""
        self.status = status
        """HTTP status."""
        self.more = more
        """What stood beside the error, e.g. the current nonce."""


def check(status: int, content: bytes) -> None:
    """Raise `Answered` for every status but success."""
    if 200 <= status < 300:
        return
    try:
        answer = msgspec.json.decode(content)
        error = answer.pop("error")
        message, hint, code, kind = str(error["message"]), str(error["hint"]), int(error["code"]), str(error["kind"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise Answered(f"the daemon answered with status {status}", code=1, kind="", status=status, more={}) from None
    raise Answered(message, hint, code=code, kind=kind, status=status, more=answer)
