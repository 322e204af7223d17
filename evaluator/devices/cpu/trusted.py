"""The trusted process's side of a processor: sealed memory, and a page of what the judge read of a stopped runner."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Sequence
from typing import Any

import torch

from evaluator.devices.cpu.flush import CacheFlush
from evaluator.devices.memory import Block, Taking
from evaluator.protocol.memory import map_snapshot
from evaluator.protocol.sealing import sealed_memory


class SealedBlock:
    """Memory that this process writes and a runner can only read."""

    def __init__(self, name: str, size: int) -> None:
        self.descriptor, self._map = sealed_memory(f"inputs-{name}", max(1, size), read_only=True)

    def tensor(self, offset: int, item: dict[str, Any]) -> torch.Tensor:
        """A tensor over it."""
        flat = torch.frombuffer(self._map, dtype=getattr(torch, item["dtype"]), count=item["elements"], offset=offset)
        return flat.as_strided(item["shape"], item["strides"])

    def close(self) -> None:
        """Drop it."""
        os.close(self.descriptor)


class Memory:
    """Slots in memory files, a flush on the measuring cores, and the judge's page."""

    def __init__(self, judge_cores: tuple[int, ...], device_cores: tuple[int, ...]) -> None:
        torch.set_num_threads(len(judge_cores))
        self._flush = CacheFlush(device_cores)
        self.flush_bytes = self._flush.bytes
        self._page: mmap.mmap | None = None

    def block(self, runner: str, size: int) -> SealedBlock:
        """Memory for one runner's slots."""
        return SealedBlock(runner, size)

    def flush(self) -> float:
        """Empty the caches; microseconds that it took."""
        begun = time.perf_counter_ns()
        self._flush.run()
        return (time.perf_counter_ns() - begun) / 1e3

    def share(self, descriptor: int, size: int) -> None:
        """Map the page into which the judge copies what it reads of a stopped runner."""
        self._page = map_snapshot(descriptor, size)

    def show(self, runner: str, address: int, nbytes: int, pieces: Sequence[dict[str, int]], descriptors: Sequence[int]) -> None:
        """Nothing is shown: the judge reads the stopped process."""
        raise RuntimeError("a stopped runner shows nothing")

    def forget(self, runner: str) -> None:
        """Nothing was shown."""

    def take(self, runner: str, places: Sequence[tuple[int, int]]) -> Taking | None:
        """Nothing was shown: the judge has filled the page."""
        return None

    def outputs(self, places: Sequence[dict[str, Any]]) -> list[torch.Tensor]:
        """Tensors over the raw bytes of the page."""
        return [self._from_page(place, place["offset"]) for place in places]

    def inputs(self, block: Block, base: int, item: dict[str, Any], offset: int | None) -> torch.Tensor:
        """An input as the runner sees it: its mapping is private, so the judge has read it into the page."""
        assert offset is not None
        return self._from_page(item, offset)

    def _from_page(self, place: dict[str, Any], offset: int) -> torch.Tensor:
        assert self._page is not None
        dtype = getattr(torch, place["dtype"])
        span = 1 + sum((s - 1) * t for s, t in zip(place["shape"], place["strides"], strict=True)) if 0 not in place["shape"] else 0
        if span == 0:
            return torch.empty(place["shape"], dtype=dtype)
        width = torch.empty(0, dtype=dtype).element_size()
        copy = bytearray(self._page[offset : offset + span * width])
        return torch.frombuffer(copy, dtype=dtype, count=span).as_strided(place["shape"], place["strides"])
