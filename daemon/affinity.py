"""Which cores belong to the measuring device and which to everybody else.

On a CPU device candidates are timed on the last cores (at most eight), as the judge lays them out;
daemon, judge and console keep to the first. With a single core nothing is pinned, and the judge
refuses to time anything.
Invariant: a child process starts with the whole set again (`unpinned`): the judge lays out its own.
Not for: pinning the candidate; that is the judge's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

MEASURING_CORES = 8
"""Most cores a CPU device measures on; the judge's own rule."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A split of the cores this process may use."""

    everywhere: frozenset[int]
    daemon: frozenset[int]
    """For daemon, judge and console; equals `everywhere` where there is one core only."""
    device: frozenset[int]
    """For what is timed on a CPU device."""


def plan(cpus: frozenset[int]) -> Plan:
    """Split `cpus`: the last core(s) for the device, the first for the daemon."""
    ordered = sorted(cpus)
    if len(ordered) < 2:
        return Plan(everywhere=cpus, daemon=cpus, device=cpus)
    measuring = min(MEASURING_CORES, len(ordered) - 1)
    return Plan(everywhere=cpus, daemon=frozenset(ordered[:-measuring]), device=frozenset(ordered[-measuring:]))


def current() -> Plan:
    """The plan for the cores this process may use now; call it before `pin`."""
    return plan(frozenset(os.sched_getaffinity(0)))


def pin(layout: Plan) -> None:
    """Keep the calling thread, and threads it starts later, off the device's cores."""
    os.sched_setaffinity(0, layout.daemon)


@contextlib.contextmanager
def unpinned(layout: Plan) -> Iterator[None]:
    """Let a process that is forked inside start with every core."""
    os.sched_setaffinity(0, layout.everywhere)
    try:
        yield
    finally:
        os.sched_setaffinity(0, layout.daemon)
