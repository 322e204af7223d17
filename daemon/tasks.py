"""Finishing what must be finished, also while being cancelled.

Invariant: `finish` returns or raises only when the work is done; a cancellation that came meanwhile is
raised afterwards, never lost.
Not for: work that may be given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Run `work` to its end whatever happens to the caller; then let a cancellation through."""
    task: asyncio.Future[T] = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:
            break
    if cancelled:
        if not task.cancelled():
            task.exception()
        raise asyncio.CancelledError
    return task.result()


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait until it has ended, however it ends."""
    task.cancel()
    await asyncio.wait({task})
