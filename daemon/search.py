"""The search of a run: its orchestrator with the model client that its configuration names.

Invariant: returns when the search is finished; raises when it cannot go on; may be called again after
a kill, because everything that lasts is in the journal.
Not for: preparing a run, or its controls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agents.clients.opening import open_client
from agents.orchestrator import run_search
from agents.ports import RunPort

Search = Callable[[RunPort], Awaitable[None]]
"""Drives one prepared run to its end."""


async def agent_search(port: RunPort) -> None:
    """Let agents search until the orchestrator says that it is done."""
    settings = port.settings()
    client = open_client(settings)
    await run_search(port, lambda _role: client, settings=settings)
