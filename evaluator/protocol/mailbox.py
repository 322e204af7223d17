"""The two mailbox pages as the judge sees them.

The judge alone writes the request page: operation and slot first, the random nonce last. It reads
the answer page as hostile data. An echo that does not belong to the post is `EarlyEcho`.
Not for: time (`protocol.clock`).
"""

from __future__ import annotations

import math
import os
import secrets
from dataclasses import dataclass
from typing import Any

from evaluator.protocol.sealing import sealed_memory
from evaluator.runner import layout

MAX_OUTPUT_BYTES = 4 << 30


class BadAnswer(Exception):
    """The answer page holds something no runner writes."""


class EarlyEcho(Exception):
    """An echo before its post or of another nonce, or a runner that ran before its clock: `tampered`."""


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """Where the runner says one output lies (its own addresses; untrusted, bounded)."""

    address: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def as_fields(self) -> dict[str, Any]:
        """For the trusted process."""
        return {
            "address": self.address,
            "nbytes": self.nbytes,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "strides": list(self.strides),
        }


class Signal:
    """One word that the judge alone writes and others watch."""

    BYTES = 4096

    def __init__(self) -> None:
        self.descriptor, self._map = sealed_memory("signal", self.BYTES, read_only=True)
        self._word = memoryview(self._map).cast("Q")

    def raise_(self) -> None:
        """Change it."""
        self._word[0] += 1

    def close(self) -> None:
        """Release page and descriptor."""
        self._word.release()
        self._map.close()
        os.close(self.descriptor)


class Mailbox:
    """Request and answer page of one runner."""

    def __init__(self) -> None:
        self.request_fd, self._request_map = sealed_memory("request", layout.REQUEST_BYTES, read_only=True)
        self.answer_fd, self._answer_map = sealed_memory("answer", layout.ANSWER_BYTES, read_only=False)
        self._request = memoryview(self._request_map).cast("Q")
        self.answer = memoryview(self._answer_map).cast("Q")
        self._expected = 0

    def post(self, operation: int, slot: int = 0) -> int:
        """Write one request; return its nonce. The runner must be stopped."""
        if self.answer[layout.ECHO] != self._expected:
            raise EarlyEcho("the answer page changed without a post")
        nonce = secrets.randbits(63) | 1
        self._request[layout.OPERATION] = operation
        self._request[layout.SLOT] = slot
        self._request[layout.NONCE] = nonce
        self._expected = nonce
        return nonce

    def code(self) -> int:
        """Code of the last answer."""
        return int(self.answer[layout.CODE])

    def event_us(self) -> float:
        """The runner's own figure for the last call."""
        return int(self.answer[layout.EVENT_NS]) / 1e3

    def text(self) -> str:
        """The runner's message beside the last answer."""
        size = min(int(self.answer[layout.TEXT_BYTES]), layout.TEXT_LIMIT)
        raw = bytes(self._answer_map[layout.TEXT_OFFSET : layout.TEXT_OFFSET + size])
        return raw.decode("utf-8", "replace")

    def outputs(self) -> list[OutputPlace]:
        """Where the last call's outputs lie."""
        count = int(self.answer[layout.OUTPUTS])
        if not 0 < count <= layout.MAX_OUTPUTS:
            raise BadAnswer(f"{count} outputs")
        return [self._output(layout.FIRST_OUTPUT + index * layout.OUTPUT_WORDS) for index in range(count)]

    def close(self) -> None:
        """Release pages and descriptors."""
        self._request.release()
        self.answer.release()
        self._request_map.close()
        self._answer_map.close()
        os.close(self.request_fd)
        os.close(self.answer_fd)

    def _output(self, base: int) -> OutputPlace:
        words = [int(w) for w in self.answer[base : base + layout.OUTPUT_WORDS]]
        address, nbytes, dtype, dims = words[:4]
        if dtype >= len(layout.DTYPES) or dims > layout.MAX_DIMS or nbytes > MAX_OUTPUT_BYTES:
            raise BadAnswer("an output of impossible shape")
        shape, strides = words[4 : 4 + dims], words[4 + layout.MAX_DIMS : 4 + layout.MAX_DIMS + dims]
        if math.prod(shape) * layout.ITEMSIZES[dtype] > MAX_OUTPUT_BYTES or max(shape + strides, default=0) > MAX_OUTPUT_BYTES:
            raise BadAnswer("an output of impossible shape")
        if _span(shape, strides) * layout.ITEMSIZES[dtype] != nbytes:
            raise BadAnswer("an output whose shape does not span its memory")
        return OutputPlace(address, nbytes, layout.DTYPES[dtype], tuple(shape), tuple(strides))


def _span(shape: list[int], strides: list[int]) -> int:
    if any(size == 0 for size in shape):
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1
