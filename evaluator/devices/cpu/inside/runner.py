"""A runner's side of a processor: its input slots.

The mapping of the slots is private (copy on write) of a sealed, read-only descriptor: the runner sees
each new value the trusted process writes, and a write of its own reaches nobody else; the judge finds
it by comparing the runner's memory with the trusted process's private copy.
Everything here runs in the candidate's own process: nothing rests on it.
"""

from __future__ import annotations

import mmap
from typing import Any

import torch

HEAP_PIECES, HEAP_PIECE_BYTES = 16, 16 << 20
"""Memory that is faulted in before any source is loaded; pieces below the allocator's threshold for mappings of their own."""


class Inside:
    """What the runner program asks of its device."""

    loop = None

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        _fault_in_heap()
        self._canary = torch.ones(160, 160)

    def place(self, model: torch.nn.Module) -> torch.nn.Module:
        """The module on this device."""
        return model

    def slots(self, descriptor: int, *, slots: int, slot_bytes: int, layout: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Input slots, as tensors over shared memory."""
        shared = mmap.mmap(descriptor, slots * slot_bytes, access=mmap.ACCESS_COPY)

        def value(base: int, item: dict[str, Any]) -> Any:
            return _tensor(shared, base, item) if item["kind"] == "tensor" else item["value"]

        return [tuple(value(index * slot_bytes, item) for item in layout) for index in range(slots)]

    def synchronise(self) -> None:
        """Nothing: what a processor was told to do is done."""

    def touch(self) -> None:
        """Nothing: a processor that is woken up is there."""

    def canary(self) -> None:
        """A fixed piece of work that tells whether the device is quiet."""
        torch.mm(self._canary, self._canary)

    def export(self, address: int, nbytes: int) -> tuple[list[dict[str, int]], list[int]]:
        """Nothing is handed over: the judge reads the stopped process."""
        raise RuntimeError("outputs on a processor are read from the stopped process")


def _fault_in_heap() -> None:
    """Let the allocator keep memory whose pages are there.

    Otherwise a process's first calls pay for the pages of their outputs, and for how many calls is a matter of luck: two
    processes of one source then differ by more than a kernel gains.
    """
    pieces = [torch.empty(HEAP_PIECE_BYTES, dtype=torch.uint8).fill_(1) for _ in range(HEAP_PIECES)]
    del pieces


def _tensor(shared: mmap.mmap, base: int, item: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, item["dtype"])
    if item["elements"] == 0:
        return torch.empty(item["shape"], dtype=dtype)
    flat = torch.frombuffer(shared, dtype=dtype, count=item["elements"], offset=base + item["offset"])
    return flat.as_strided(item["shape"], item["strides"])
