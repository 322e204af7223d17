"""The trusted process's side of an NVIDIA GPU: slots that a runner maps, a cold L2 cache, and copies of outputs where they lie.

What a runner hands over is mapped beside the trusted process's own memory and only ever read; the slots
are written here and, since an importer sets its own rights, checked against a private copy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import torch

from evaluator.devices.cuda.inside import driver, memory
from evaluator.devices.memory import Block, Taking

FLUSH_BYTES = 256 << 20


class ExportedBlock:
    """Device memory that one runner maps by its descriptor."""

    def __init__(self, size: int) -> None:
        allocation = driver.Allocation.create(size)
        self._mapping = driver.Mapping([allocation])
        self.descriptor = allocation.export()
        allocation.release()
        self._whole = memory.raw(self._mapping.address, self._mapping.size)

    def tensor(self, offset: int, item: dict[str, Any]) -> torch.Tensor:
        """A tensor over it."""
        return memory.typed(self._whole, offset, item)

    def close(self) -> None:
        """Give it back, emptied: what comes after it must not find these values."""
        self._whole.zero_()
        torch.cuda.synchronize()
        del self._whole
        self._mapping.close()
        os.close(self.descriptor)


class Window:
    """A runner's output where it lies, and room for a copy of it."""

    def __init__(self, address: int, nbytes: int, pieces: Sequence[dict[str, int]], descriptors: Sequence[int]) -> None:
        allocations = [driver.Allocation.imported(d, p["size"]) for d, p in zip(descriptors, pieces, strict=True)]
        self._mapping = driver.Mapping(allocations)
        for allocation in allocations:
            allocation.release()
        self.copy = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        self.take = driver.prepared_copy(self.copy.data_ptr(), self._mapping.address + address - pieces[0]["base"], nbytes)

    def close(self) -> None:
        """Unmap it."""
        self._mapping.close()


class Memory:
    """Exported blocks, a flush of the L2 cache, and windows on runners' outputs."""

    def __init__(self, judge_cores: tuple[int, ...], device_cores: tuple[int, ...]) -> None:
        torch.set_num_threads(len(judge_cores))
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.flush_bytes = FLUSH_BYTES
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self._windows: dict[str, dict[tuple[int, int], Window]] = {}
        self._taken: list[torch.Tensor] = []
        self._nothing = torch.empty(0, dtype=torch.uint8, device="cuda")

    def block(self, runner: str, size: int) -> ExportedBlock:
        """Memory for one runner's slots."""
        return ExportedBlock(size)

    def flush(self) -> float:
        """Write over the whole L2 cache and wait for everything; microseconds that it took."""
        torch.cuda.synchronize()
        begun = time.perf_counter_ns()
        driver.reset_persisting_cache()
        self._flush.zero_()
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - begun) / 1e3

    def share(self, descriptor: int, size: int) -> None:
        """No page is shared: outputs stay on the device."""
        raise RuntimeError("outputs on this device are shown, not read from a stopped process")

    def show(self, runner: str, address: int, nbytes: int, pieces: Sequence[dict[str, int]], descriptors: Sequence[int]) -> None:
        """Map the memory behind a runner's output."""
        shown = self._windows.setdefault(runner, {})
        if (old := shown.pop((address, nbytes), None)) is not None:
            old.close()
        shown[address, nbytes] = Window(address, nbytes, pieces, descriptors)

    def forget(self, runner: str) -> None:
        """Unmap all that was shown of a runner."""
        for window in self._windows.pop(runner, {}).values():
            window.close()

    def take(self, runner: str, places: Sequence[tuple[int, int]]) -> Taking | None:
        """Copy outputs from their windows into memory of this process; None where there is no window."""
        begun = time.perf_counter_ns()
        shown = self._windows.get(runner, {})
        windows = [shown.get(place) for place in places if place[1]]
        if None in windows:
            return None
        for window in windows:
            assert window is not None
            window.take()
        told = time.perf_counter_ns()
        driver.synchronize()
        done = time.perf_counter_ns()
        self._taken = [shown[place].copy if place[1] else self._nothing for place in places]
        return Taking((told - begun) / 1e3, (done - begun) / 1e3)

    def outputs(self, places: Sequence[dict[str, Any]]) -> list[torch.Tensor]:
        """The outputs that were copied last."""
        width = {place["dtype"]: torch.empty(0, dtype=getattr(torch, place["dtype"])).element_size() for place in places}
        return [
            memory.typed(copy, 0, {**place, "elements": place["nbytes"] // width[place["dtype"]]})
            for copy, place in zip(self._taken, places, strict=True)
        ]

    def inputs(self, block: Block, base: int, item: dict[str, Any], offset: int | None) -> torch.Tensor:
        """An input as the runner sees it: the block is the same memory."""
        return block.tensor(base + item["offset"], item)
