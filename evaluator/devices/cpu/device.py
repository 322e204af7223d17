"""The CPU as a measured device: which cores measure, which judge, and what its state is.

Two input slots suffice here: a runner is stopped while they are written and until its clock starts,
so an early start is impossible and more slots would only cost time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.devices.processor import Cores, cpu_model, split_cores

SLOTS = 2


@dataclass(frozen=True, slots=True)
class CpuDevice:
    """A split of this machine's cores."""

    cores: Cores
    name: str = "cpu"
    kind: str = "cpu"
    lease: str = "cpu"
    slots: int = SLOTS
    stands_still: bool = True
    """A runner is stopped between its calls, so that its memory can be read as it was at the answer."""
    interprets_triton: bool = True
    reserves_addresses: bool = False
    nodes: tuple[Path, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """What a runner's sandbox adds to its environment."""
        return {"TRITON_INTERPRET": "1"}

    def kernel_compiler(self) -> None:
        """A processor's kernels are C++."""

    def mounts(self, cache: Path) -> tuple[tuple[Path, str], ...]:
        """Nothing: the loop is Python."""
        return ()

    def slots_for(self, reference_us: float, slot_bytes: int) -> int:
        """How many input slots a call of this length needs."""
        return SLOTS

    def context(self) -> dict[str, Any]:
        """State that belongs into every record."""
        return {
            "device": self.name,
            "cpu": cpu_model(),
            "judge_cores": list(self.cores.judge),
            "device_cores": list(self.cores.runners),
            "load": [round(x, 2) for x in os.getloadavg()],
            "mhz": _megahertz(self.cores.runners[0]),
        }


def open_cpu() -> CpuDevice:
    """This machine's processor."""
    return CpuDevice(split_cores())


def _megahertz(core: int) -> float | None:
    try:
        return float(Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").read_text()) / 1e3
    except (OSError, ValueError):
        return None
