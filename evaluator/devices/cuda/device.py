"""One NVIDIA GPU as a measured device: which one, which cores, and what its state is.

Runners and the trusted process see this one device alone. A device in another compute mode than the
default, or with a multi-process server, is refused: both change what a call costs and who may look.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.devices.cuda import management
from evaluator.devices.cuda.inside import LOOP
from evaluator.devices.cuda.management import Gpu
from evaluator.devices.cuda.native import native_loop
from evaluator.devices.cuda.nvcc import Nvcc, find_nvcc
from evaluator.devices.processor import Cores, spinning_cores
from evaluator.errors import EnvironmentFault

SLOTS = 4
POOL_US = 2000.0
"""Starting early on every slot must cost at least that much."""
POOL_SHARE = 0.1
"""Of the device's memory, for one runner's slots."""
OLDEST_CUDA = (12, 0)
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
MPS_PIPE = Path("/tmp/nvidia-mps")


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """One GPU and this machine's cores."""

    gpu: Gpu
    cores: Cores
    name: str
    uuid: str
    model: str
    memory_bytes: int
    nodes: tuple[Path, ...]
    kind: str = "cuda"
    slots: int = SLOTS
    stands_still: bool = False
    interprets_triton: bool = False
    reserves_addresses: bool = True

    @property
    def lease(self) -> str:
        """One piece of hardware is one lease, whatever number it has here."""
        return self.uuid

    @property
    def environment(self) -> dict[str, str]:
        """What a runner's sandbox adds to its environment: memory that can be shown, and the libraries' places."""
        found = {
            "CUDA_VISIBLE_DEVICES": self.uuid,
            "PYTORCH_ALLOC_CONF": "expandable_segments:True",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "CUDA_CACHE_DISABLE": "1",
        }
        if "LD_LIBRARY_PATH" in os.environ:
            found["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return found

    def kernel_compiler(self) -> Nvcc:
        """NVIDIA's compiler, for this device."""
        return find_nvcc(self.gpu.capability)

    def mounts(self, cache: Path) -> tuple[tuple[Path, str], ...]:
        """The runner's loop, compiled."""
        return ((native_loop(cache), LOOP),)

    def slots_for(self, reference_us: float, slot_bytes: int) -> int:
        """As many as make an early start on all of them cost POOL_US, as far as memory goes."""
        wanted = max(SLOTS, math.ceil(POOL_US / max(1.0, reference_us)))
        room = int(self.memory_bytes * POOL_SHARE) // max(1, slot_bytes)
        return max(SLOTS, min(wanted, room))

    def context(self) -> dict[str, Any]:
        """State that belongs into every record."""
        return {
            "device": self.name,
            "gpu": self.model,
            "uuid": self.uuid,
            "driver": management.driver_version(),
            "compute_mode": self.gpu.compute_mode,
            **self.gpu.state(),
            "judge_cores": list(self.cores.judge),
            "device_cores": list(self.cores.runners),
            "load": [round(x, 2) for x in os.getloadavg()],
        }


def open_cuda(index: int) -> CudaDevice:
    """The GPU with this number; EnvironmentFault where there is none, or where nothing may be measured on it."""
    found = management.gpus()
    if index >= len(found):
        known = ", ".join(f"cuda:{gpu.index} {gpu.name}" for gpu in found) or "none"
        raise EnvironmentFault(f"there is no device cuda:{index} here", f"CUDA devices: {known}")
    gpu = found[index]
    if management.cuda_version() < OLDEST_CUDA:
        raise EnvironmentFault(
            f"the driver {management.driver_version()} is too old: it runs CUDA {'.'.join(map(str, management.cuda_version()))}",
            "install a driver for CUDA 12 or newer",
        )
    if gpu.compute_mode != "default":
        mode = f"cuda:{index} is in compute mode `{gpu.compute_mode}`: two processes must share it"
        raise EnvironmentFault(mode, "its owner can change that: nvidia-smi -c DEFAULT")
    if MPS_PIPE.joinpath("control").exists():
        server = "a multi-process server (MPS) runs here: processes would compute at once"
        raise EnvironmentFault(server, "stop it: echo quit | nvidia-cuda-mps-control")
    nodes = tuple(Path(p) for p in (f"/dev/nvidia{gpu.minor}", *NODES) if Path(p).exists())
    return CudaDevice(
        gpu=gpu,
        cores=spinning_cores(),
        name=f"cuda:{index}",
        uuid=gpu.uuid,
        model=gpu.name,
        memory_bytes=gpu.memory_bytes,
        nodes=nodes,
    )
