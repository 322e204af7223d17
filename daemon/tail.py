"""The end of a growing journal, and a way to wait for it to grow.

Invariant: a waiter holds one integer and nothing is queued for it, so any number of slow waiters cost
nothing; a waiter that asks after the fact returns at once.
Not for: the records themselves.
"""

from __future__ import annotations

import asyncio


class Tail:
    """The seq of the last durable record."""

    def __init__(self, seq: int = 0) -> None:
        self._seq = seq
        self._closed = False
        self._grown = asyncio.Event()

    @property
    def seq(self) -> int:
        """Everything up to here is durable and folded in."""
        return self._seq

    @property
    def closed(self) -> bool:
        """Whether nobody will add records any more in this life of the daemon."""
        return self._closed

    def advance(self, seq: int) -> None:
        """Move the end to `seq` and wake everybody who waits."""
        self._seq = max(self._seq, seq)
        self._wake()

    def close(self) -> None:
        """Wake everybody for the last time."""
        self._closed = True
        self._wake()

    async def wait(self, after: int) -> None:
        """Return once the end is past `after`, or the tail is closed."""
        while self._seq <= after and not self._closed:
            await self._grown.wait()

    def _wake(self) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
