"""Cores and priorities of this machine's processes, the same for every device.

Runners are pinned to the measuring cores and cannot change that; judge and trusted process stay on
the others.
Not for: what is measured.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import EnvironmentFault

MAX_DEVICE_CORES = 8
SPINNING = 4
HIGHEST_PRIORITY = -20
MEASURED_LEVEL, JUDGE_LEVEL = 1, 2


@dataclass(frozen=True, slots=True)
class Cores:
    """A split of this machine's cores."""

    judge: tuple[int, ...]
    runners: tuple[int, ...]

    def take_over(self, pid: int) -> None:
        """Put every thread of a stopped process on the runners' cores; it cannot change that itself."""
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), self.runners)


def split_cores() -> Cores:
    """The first cores judge (four at most), the last run (eight at most)."""
    cores = sorted(_all_cores())
    if len(cores) < 2:
        raise EnvironmentFault(
            "timing needs two cores: one measures, one judges", hint="run on a machine (or container) with at least two cores"
        )
    count = min(MAX_DEVICE_CORES, len(cores) - 1)
    return Cores(judge=tuple(cores[: len(cores) - count][:4]), runners=tuple(cores[-count:]))


def spinning_cores() -> Cores:
    """One core for whichever runner has its turn, and three for judge and trusted process, which spin meanwhile.

    None shares a physical core with another where there are four: a spinning neighbour would slow the runner's launches.
    """
    cores = sorted(_all_cores())
    if len(cores) < SPINNING:
        raise EnvironmentFault(
            "timing a device needs four cores: one launches, the others judge",
            hint="run on a machine (or container) with at least four cores",
        )
    physical = sorted({min(_siblings(core) & set(cores)) for core in cores})
    chosen = physical if len(physical) >= SPINNING else cores
    return Cores(judge=tuple(chosen[: SPINNING - 1]), runners=(chosen[-1],))


def building_cores(cores: Cores) -> tuple[int, ...]:
    """Where compilers run: beside the runners, whose turn another judge may have; on every core where there are too few."""
    everywhere = _all_cores()
    beside = everywhere - set(cores.runners)
    return tuple(sorted(beside if len(beside) >= 2 else everywhere))


def _siblings(core: int) -> set[int]:
    """Every core that shares the physical one, itself included."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return {core}
    found: set[int] = {core}
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def raise_priority(pid: int, *, realtime: bool) -> str:
    """Schedule a measured process ahead of everything ordinary, where this user may; reference and candidates alike.

    Real-time (FIFO, lowest level) where allowed, else the highest nice level, else nothing. One that spins between its
    calls is not real-time: the kernel would hold it back for a share of every second. Returns which, for the record.
    Threads started later inherit it.
    """
    return _raise(pid, os.SCHED_FIFO if realtime else None, MEASURED_LEVEL)


def raise_judge(pid: int = 0) -> str:
    """Schedule a process of the judge's ahead of every measured one: none of those may keep it from stopping it.

    What it starts begins at ordinary priority.
    """
    return _raise(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, JUDGE_LEVEL)


def _raise(pid: int, policy: int | None, level: int) -> str:
    try:
        if policy is not None:
            os.sched_setscheduler(pid, policy, os.sched_param(level))
            return "fifo"
    except OSError:
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, pid, HIGHEST_PRIORITY)
        return "nice"
    except OSError:
        return "ordinary"


def cpu_model() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _all_cores() -> set[int]:
    """Every core this process may use, also where its parent pinned it to the judging ones."""
    own = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        return os.sched_getaffinity(0)
    except OSError:
        return own
    finally:
        os.sched_setaffinity(0, own)
