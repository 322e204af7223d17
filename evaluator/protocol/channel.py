"""The judge's end of a control socket: one request, one answer, a deadline.

Invariant: whatever comes back is bounded and is data; a closed or silent socket is an outcome
(`Gone`, `Silent`), an operation that raised on the other side is `Raised` with its text.
Not for: timed calls.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from evaluator.runner.control import LINE_LIMIT, MOST_DESCRIPTORS


class ChannelError(Exception):
    """Base: the other side did not answer as asked."""


class Gone(ChannelError):
    """The process closed its end: it exited or was killed."""


class Silent(ChannelError):
    """No whole answer within the deadline."""


class Unasked(ChannelError):
    """The other side said something that nobody asked for."""


class Raised(ChannelError):
    """The operation raised on the other side."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(f"{error}: {text.strip().splitlines()[-1] if text.strip() else ''}")
        self.error = error
        self.text = text


class Channel:
    """One control socket. Descriptors that arrive are dropped unless it `takes_descriptors`."""

    def __init__(self, end: socket.socket, *, takes_descriptors: bool = False) -> None:
        self._socket = end
        self._takes = takes_descriptors
        self._pending = b""
        self.descriptors: list[int] = []
        """Descriptors received and not yet taken."""

    def ask(self, op: str, *, timeout_s: float, descriptors: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send one request and return its answer."""
        self.send(op, timeout_s=timeout_s, descriptors=descriptors, **fields)
        return self.answer(op, timeout_s=timeout_s)

    def ask_for_descriptors(self, op: str, *, timeout_s: float, **fields: Any) -> tuple[dict[str, Any], list[int]]:
        """Like `ask`, of a process whose descriptors are taken with this answer alone; the caller closes them."""
        self._takes = True
        try:
            return self.ask(op, timeout_s=timeout_s, **fields), self.descriptors
        except BaseException:
            for descriptor in self.descriptors:
                os.close(descriptor)
            raise
        finally:
            self._takes, self.descriptors = False, []

    def send(self, op: str, *, timeout_s: float = 10.0, descriptors: Sequence[int] = (), **fields: Any) -> None:
        """Send one request without waiting for its answer."""
        self._require_silence(op)
        line = json.dumps({"op": op, **fields}).encode() + b"\n"
        try:
            self._socket.settimeout(timeout_s)
            sent = socket.send_fds(self._socket, [line], list(descriptors)) if descriptors else 0
            self._socket.sendall(line[sent:])
        except TimeoutError as error:
            raise Silent(f"no answer to `{op}` within {timeout_s:.0f} s") from error
        except OSError as error:
            raise Gone(f"the process ended before `{op}`") from error

    def answer(self, op: str, *, timeout_s: float) -> dict[str, Any]:
        """Wait for one answer line."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            self._read(op, deadline - time.monotonic())
        line, self._pending = self._pending.split(b"\n", 1)
        return _parse(op, line)

    def take_descriptor(self) -> int:
        """The oldest descriptor received."""
        return self.descriptors.pop(0)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _require_silence(self, op: str) -> None:
        """Nothing may lie unread before a request: an answer is only ever one to what was asked."""
        self._socket.setblocking(False)
        try:
            self._pending += self._socket.recv(1)
        except BlockingIOError:
            pass
        except OSError as error:
            raise Gone(f"the process ended before `{op}`") from error
        if self._pending:
            raise Unasked(f"the control socket spoke before `{op}` was asked")

    def _read(self, op: str, left_s: float) -> None:
        if left_s <= 0:
            raise Silent(f"no answer to `{op}` in time")
        try:
            self._socket.settimeout(left_s)
            data, descriptors, _, _ = socket.recv_fds(self._socket, 65536, MOST_DESCRIPTORS if self._takes else 0)
        except TimeoutError as error:
            raise Silent(f"no answer to `{op}` in time") from error
        except OSError as error:
            raise Gone(f"the process ended during `{op}`") from error
        if not data:
            raise Gone(f"the process ended during `{op}`")
        self.descriptors += descriptors
        self._pending += data
        if len(self._pending) > LINE_LIMIT:
            raise Gone(f"the answer to `{op}` is over {LINE_LIMIT} bytes")


def _parse(op: str, line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Gone(f"the answer to `{op}` is not JSON") from error
    if not isinstance(answer, dict) or "ok" not in answer:
        raise Gone(f"the answer to `{op}` is no answer")
    if not answer["ok"]:
        raise Raised(str(answer.get("error", "Error"))[:200], str(answer.get("text", ""))[:16000])
    return answer
