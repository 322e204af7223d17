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


class Inside:
    """What the runner program asks of its device."""

    loop = None

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
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


def _tensor(shared: mmap.mmap, base: int, item: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, item["dtype"])
    if item["elements"] == 0:
        return torch.empty(item["shape"], dtype=dtype)
    flat = torch.frombuffer(shared, dtype=dtype, count=item["elements"], offset=base + item["offset"])
    return flat.as_strided(item["shape"], item["strides"])
