"""The CPU as a measured device: which cores measure, which judge, and what its state is.

Runners are pinned to the measuring cores and cannot change that; judge and trusted process stay on
the others. With fewer than two cores nothing is timed.
Two input slots suffice here: a runner is stopped while they are written and until its clock starts,
so an early start is impossible and more slots would only cost time (a GPU needs at least four).
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.errors import EnvironmentFault

SLOTS = 2
MAX_DEVICE_CORES = 8
HIGHEST_PRIORITY = -20
MEASURED_LEVEL, JUDGE_LEVEL = 1, 2


@dataclass(frozen=True, slots=True)
class CpuDevice:
    """A split of this machine's cores."""

    judge_cores: tuple[int, ...]
    device_cores: tuple[int, ...]
    name: str = "cpu"
    slots: int = SLOTS

    def take_over(self, pid: int) -> None:
        """Put every thread of a stopped process on the measuring cores; it cannot change that itself."""
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), self.device_cores)

    def context(self) -> dict[str, Any]:
        """State that belongs into every record."""
        return {
            "device": self.name,
            "cpu": cpu_model(),
            "judge_cores": list(self.judge_cores),
            "device_cores": list(self.device_cores),
            "load": [round(x, 2) for x in os.getloadavg()],
            "mhz": _megahertz(self.device_cores[0]),
        }


def open_cpu() -> CpuDevice:
    """Split the machine's cores: the first judges, the last (at most eight) measure."""
    cores = sorted(_all_cores())
    if len(cores) < 2:
        raise EnvironmentFault(
            "timing needs two cores: one measures, one judges", hint="run on a machine (or container) with at least two cores"
        )
    count = min(MAX_DEVICE_CORES, len(cores) - 1)
    return CpuDevice(judge_cores=tuple(cores[: len(cores) - count][:4]), device_cores=tuple(cores[-count:]))


def raise_priority(pid: int) -> str:
    """Schedule a measured process ahead of everything ordinary, where this user may; reference and candidates alike.

    Real-time (FIFO, lowest level) where allowed, else the highest nice level, else nothing. Returns
    which, for the record. Threads started later inherit it.
    """
    return _raise(pid, os.SCHED_FIFO, MEASURED_LEVEL)


def raise_judge(pid: int = 0) -> str:
    """Schedule a process of the judge's ahead of every measured one: none of those may keep it from stopping it.

    What it starts begins at ordinary priority.
    """
    return _raise(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, JUDGE_LEVEL)


def _raise(pid: int, policy: int, level: int) -> str:
    try:
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


def _megahertz(core: int) -> float | None:
    try:
        return float(Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").read_text()) / 1e3
    except (OSError, ValueError):
        return None
