"""Finding the daemon and the run that a command means.

Invariant: a beginning of a run id names a run only when it names one; every miss says what there is.
Not for: starting daemons (`console.cli.daemon`, `console.demo`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from console.errors import UsageFault
from daemon.client import Client
from daemon.places import find_socket
from state.files import state_dir as default_state_dir
from state.rows import RunRow

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a daemon keeps its state and where it listens."""

    state_dir: Path
    socket: Path


def place_of(state_dir: Path | None, socket: Path | None) -> Place:
    """Resolve the options against the defaults."""
    root = default_state_dir(state_dir)
    return Place(state_dir=root, socket=socket.expanduser().absolute() if socket else find_socket(root))


async def with_client(place: Place, work: Callable[[Client], Awaitable[T]]) -> T:
    """Do something over one client; NotReachable (exit 4) where no daemon answers."""
    async with Client(place.socket) as client:
        return await work(client)


async def find_run(client: Client, named: str | None) -> RunRow:
    """Return the run whose id begins with `named`; without a name, the latest one."""
    rows = (await client.runs()).runs
    if not rows:
        raise UsageFault("this daemon has no runs", "start one with: ratchet run PROBLEM")
    if named is None:
        return rows[0]
    found = [row for row in rows if row.run == named] or [row for row in rows if row.run.startswith(named)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(row.run for row in (found or rows)[:5])
    raise UsageFault(f"{'several runs begin' if found else 'no run begins'} with {named!r}", f"there are: {known}")
