"""The judge's end of the two pipes to a builder sandbox: bounded lines, a deadline, and an end that is told apart from silence.

Not for: what the lines mean (`builder`).
"""

from __future__ import annotations

import json
import os
import select
import time
from types import TracebackType
from typing import Any

LINE_BYTES = 32 << 20
CHUNK = 1 << 16


class Ended(Exception):
    """The other end closed without its last word."""


class Silence(Exception):
    """Nothing came before the deadline."""


class Malformed(Exception):
    """The other end sent something that is no line of ours."""


class Conversation:
    """Two pipes. `theirs` are the descriptors to hand to the sandbox; call `handed_over` once it has them."""

    def __init__(self) -> None:
        self._incoming, their_writer = os.pipe()
        their_reader, self._outgoing = os.pipe()
        self.theirs = (their_writer, their_reader)
        self._pending = b""

    def handed_over(self) -> None:
        """Close our copies of the sandbox's ends, so that its end is seen."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = (-1, -1)

    def hear(self, deadline: float) -> dict[str, Any]:
        """The next line; raises Ended, Silence or Malformed (`deadline` on the monotonic clock)."""
        while b"\n" not in self._pending:
            readable, _, _ = select.select([self._incoming], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise Silence
            data = os.read(self._incoming, CHUNK)
            if not data:
                raise Ended
            self._pending += data
            if len(self._pending) > LINE_BYTES:
                raise Malformed("a line without an end")
        line, self._pending = self._pending.split(b"\n", 1)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Malformed("a line that is no JSON") from error
        if not isinstance(message, dict):
            raise Malformed("a line that is no object")
        return message

    def say(self, message: dict[str, Any]) -> None:
        """Send one line; raises Ended where nobody listens."""
        try:
            os.write(self._outgoing, json.dumps(message).encode() + b"\n")
        except BrokenPipeError as error:
            raise Ended from error

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for descriptor in (self._incoming, self._outgoing, *self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
