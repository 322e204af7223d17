"""A runner's side of an NVIDIA GPU: its input slots, its native loop, and what it hands over.

Everything here runs in the candidate's own process: nothing rests on it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from typing import Any

import torch

from evaluator.devices.cuda.inside import LOOP, driver, memory

CANARY = 2048
"""Rows and columns of the canary's product."""


class Inside:
    """What the runner program asks of its device."""

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self.loop = _native_loop()
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self._canary: torch.Tensor | None = None
        self._touch = torch.zeros(1, device="cuda")
        self._mappings: list[driver.Mapping] = []

    def place(self, model: torch.nn.Module) -> torch.nn.Module:
        """The module on this device."""
        return model.to("cuda")

    def slots(self, descriptor: int, *, slots: int, slot_bytes: int, layout: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Input slots, as tensors over memory that the trusted process writes."""
        size = -(-slots * slot_bytes // driver.granularity()) * driver.granularity()
        allocation = driver.Allocation.imported(descriptor, size)
        mapping = driver.Mapping([allocation])
        allocation.release()
        self._mappings.append(mapping)
        whole = memory.raw(mapping.address, mapping.size)

        def value(base: int, item: dict[str, Any]) -> Any:
            return memory.typed(whole, base + item["offset"], item) if item["kind"] == "tensor" else item["value"]

        return [tuple(value(index * slot_bytes, item) for item in layout) for index in range(slots)]

    def synchronise(self) -> None:
        """Wait for what the device was told to do."""
        torch.cuda.synchronize()

    def touch(self) -> None:
        """Switch the device to this process: the smallest kernel there is."""
        self._touch.zero_()
        torch.cuda.synchronize()

    def canary(self) -> None:
        """A fixed piece of work that tells whether the device is quiet."""
        if self._canary is None:
            self._canary = torch.ones(CANARY, CANARY, device="cuda")
        torch.mm(self._canary, self._canary)
        torch.cuda.synchronize()

    def export(self, address: int, nbytes: int) -> tuple[list[dict[str, int]], list[int]]:
        """The memory behind an output, piece by piece, with a descriptor of each."""
        pieces: list[dict[str, int]] = []
        descriptors: list[int] = []
        at = address
        while at < address + nbytes:
            allocation, base = driver.Allocation.behind(at)
            descriptors.append(allocation.export())
            allocation.release()
            pieces.append({"base": base, "size": allocation.size})
            at = base + allocation.size
        return pieces, descriptors


def _native_loop() -> Any:
    loader = importlib.machinery.ExtensionFileLoader("ratchet_loop", LOOP)
    spec = importlib.util.spec_from_file_location("ratchet_loop", LOOP, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
