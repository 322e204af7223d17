"""Reads what a sandboxed process prints: always drained, bounded, and cleaned at one exit.

Invariant: a process that prints without end never blocks and never costs more memory than twice the cap; `text` carries no escape,
control or direction-changing character.
Not for: results. Nothing that decides is ever read from a candidate's output.
"""

from __future__ import annotations

import os
import re
import selectors
import threading
import unicodedata
from collections import deque

CHUNK = 65536
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def sanitise(data: bytes | str) -> str:
    """Return printable text: escape sequences, control and direction characters removed, line ends as LF, tabs kept."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in text if c in "\n\t" or not (unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")))


class Kept:
    """First and last half of a stream, at most `cap` bytes together."""

    def __init__(self, cap: int) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._half = max(1, cap // 2)
        self.total = 0
        """Bytes seen."""

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._half:
            self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, cleaned, with a note where something was left out."""
        tail = b"".join(self._tail)[-self._half :]
        dropped = self.total - len(self._head) - len(tail)
        if dropped <= 0:
            return sanitise(bytes(self._head) + tail)
        return f"{sanitise(bytes(self._head))}\n[{dropped} bytes left out]\n{sanitise(tail)}"


class Drain:
    """One thread that reads several pipes to their end."""

    def __init__(self, descriptors: dict[str, int], cap: int) -> None:
        self._kept = {name: Kept(cap) for name in descriptors}
        self._descriptors = descriptors
        self._thread = threading.Thread(target=self._read, name="sandbox-output", daemon=True)
        self._thread.start()

    def text(self, name: str) -> str:
        """Cleaned text of one stream as far as it was read."""
        return self._kept[name].text()

    def join(self, timeout_s: float) -> None:
        """Wait until every pipe has reached its end."""
        self._thread.join(timeout_s)

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, descriptor in self._descriptors.items():
                selector.register(descriptor, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _ in selector.select():
                    data = os.read(key.fd, CHUNK)
                    if data:
                        self._kept[key.data].add(data)
                        continue
                    selector.unregister(key.fd)
                    os.close(key.fd)
