"""Line protocol between the judge and its processes: one JSON object a line, descriptors ride along.

The same end serves runners (inside a sandbox) and the trusted process. An operation that raises is
answered with the error's name and text; the judge decides what that means. Descriptors that an
operation returns are closed here once sent.
Not for: timed calls (they go through the mailbox).
"""

from __future__ import annotations

import json
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from typing import Any

LINE_LIMIT = 1 << 20
TEXT_LIMIT = 16_000
MOST_DESCRIPTORS = 64
"""With one message."""

Reply = tuple[dict[str, Any], list[int]] | dict[str, Any]
Operation = Callable[[dict[str, Any], list[int]], Reply | Iterator[Reply]]


class Control:
    """The served end of a control socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._pending = b""
        self._descriptors: list[int] = []

    def serve(self, operations: Callable[[str], Operation]) -> None:
        """Answer requests until the other end closes; what is still owed to it then is nothing."""
        with self._socket:
            try:
                self._send(_line({"ok": True, "ready": os.getpid()}), [])
                while (received := self._receive()) is not None:
                    for line, descriptors in _answers(operations, *received):
                        self._send(line, descriptors)
            except (BrokenPipeError, ConnectionResetError):
                return

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        while b"\n" not in self._pending:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 65536, MOST_DESCRIPTORS)
            if not data:
                return None
            self._pending += data
            self._descriptors += descriptors
        line, self._pending = self._pending.split(b"\n", 1)
        descriptors, self._descriptors = self._descriptors, []
        return json.loads(line), descriptors

    def _send(self, line: bytes, descriptors: list[int]) -> None:
        sent = socket.send_fds(self._socket, [line], descriptors) if descriptors else 0
        self._socket.sendall(line[sent:])
        for descriptor in descriptors:
            os.close(descriptor)


def _answers(operations: Callable[[str], Operation], message: dict[str, Any], descriptors: list[int]) -> Iterator[tuple[bytes, list[int]]]:
    """One answer; of an operation that is a generator, each that it yields."""
    parts = _parts(operations, message, descriptors)
    while True:
        try:
            part = next(parts)
            reply, outgoing = part if isinstance(part, tuple) else (part, [])
            line = _line({"ok": True, **reply})
        except StopIteration:
            return
        except BaseException as error:  # SystemExit and KeyboardInterrupt of a candidate are answers too
            yield _line({"ok": False, "error": type(error).__name__, "text": traceback.format_exc(limit=-12)[-TEXT_LIMIT:]}), []
            return
        yield line, outgoing


def _parts(operations: Callable[[str], Operation], message: dict[str, Any], descriptors: list[int]) -> Iterator[Reply]:
    answer = operations(message["op"])(message, descriptors)
    if isinstance(answer, Iterator):
        yield from answer
    else:
        yield answer


def _line(answer: dict[str, Any]) -> bytes:
    line = json.dumps(answer).encode() + b"\n"
    return (
        line
        if len(line) <= LINE_LIMIT
        else json.dumps({"ok": False, "error": "TooLong", "text": "the answer is over 1 MiB"}).encode() + b"\n"
    )
