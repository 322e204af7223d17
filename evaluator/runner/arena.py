"""Slots of input tensors that the trusted process fills and the runner reads.

The mapping is private (copy on write) of a sealed, read-only descriptor: the runner sees each new
value the trusted process writes, and a write of its own reaches nobody else; the judge finds it by
comparing the runner's memory with the trusted process's private copy.
Not for: outputs, or for choosing a slot.
"""

from __future__ import annotations

import mmap
from typing import Any

import torch


class Arena:
    """The input slots of one case, as tensors over shared memory."""

    def __init__(self, descriptor: int, *, slots: int, slot_bytes: int, layout: list[dict[str, Any]]) -> None:
        self._map = mmap.mmap(descriptor, slots * slot_bytes, access=mmap.ACCESS_COPY)
        self.slots = [self._slot(index * slot_bytes, layout) for index in range(slots)]

    def _slot(self, base: int, layout: list[dict[str, Any]]) -> tuple[Any, ...]:
        return tuple(self._tensor(base, item) if item["kind"] == "tensor" else item["value"] for item in layout)

    def _tensor(self, base: int, item: dict[str, Any]) -> torch.Tensor:
        dtype = getattr(torch, item["dtype"])
        if item["elements"] == 0:
            return torch.empty(item["shape"], dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=item["elements"], offset=base + item["offset"])
        return flat.as_strided(item["shape"], item["strides"])

    def addresses(self) -> list[list[int]]:
        """Address of every input tensor of every slot, for the judge's mutation check."""
        return [[value.data_ptr() if isinstance(value, torch.Tensor) else 0 for value in slot] for slot in self.slots]
