"""Waiting for something that another process or task brings about."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
from collections.abc import Callable
from typing import Any


async def eventually(check: Callable[[], Any], *, within_s: float = 40.0) -> Any:
    """The first true value of `check`, a plain or an async function."""
    async with asyncio.timeout(within_s):
        while True:
            value = check()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.02)


def spawn(command: list[str]) -> subprocess.Popen:
    """Start a process in a session of its own."""
    return subprocess.Popen(command, start_new_session=True)
