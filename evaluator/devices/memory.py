"""What the trusted process asks of a device: slots, a cold cache, and copies of what a runner answered.

Not for: choosing values, or comparing them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch


class Block(Protocol):
    """Memory of the trusted process that one runner maps."""

    @property
    def descriptor(self) -> int:
        """What the runner maps it by; the block's own."""

    def tensor(self, offset: int, item: dict[str, Any]) -> torch.Tensor:
        """A tensor over it (`dtype`, `elements`, `shape`, `strides`), at a byte offset."""

    def close(self) -> None:
        """Give it back, emptied."""


@dataclass(frozen=True, slots=True)
class Taking:
    """How long a copy of outputs took, in microseconds."""

    begun_us: float
    """Until the device was told."""
    done_us: float
    """Until it was done, what the runner still had under way included."""


class TrustedMemory(Protocol):
    """One device, from the trusted process's side."""

    flush_bytes: int

    def block(self, runner: str, size: int) -> Block:
        """Memory for one runner's slots."""

    def flush(self) -> float:
        """Empty the caches; microseconds that it took."""

    def share(self, descriptor: int, size: int) -> None:
        """Map the page into which the judge copies what it reads of a stopped runner."""

    def show(self, runner: str, address: int, nbytes: int, pieces: Sequence[dict[str, int]], descriptors: Sequence[int]) -> None:
        """Map the memory behind a runner's output, which that runner handed over piece by piece."""

    def forget(self, runner: str) -> None:
        """Unmap all that was shown of a runner."""

    def take(self, runner: str, places: Sequence[tuple[int, int]]) -> Taking | None:
        """Copy outputs, given by (address, bytes), from where they were shown; None where one was not."""

    def outputs(self, places: Sequence[dict[str, Any]]) -> list[torch.Tensor]:
        """The outputs that were copied last."""

    def inputs(self, block: Block, base: int, item: dict[str, Any], offset: int | None) -> torch.Tensor:
        """An input as the runner sees it now: at `offset` in the shared page, or in the block itself."""


def open_memory(kind: str, judge_cores: tuple[int, ...], device_cores: tuple[int, ...]) -> TrustedMemory:
    """The trusted side of a kind of device."""
    module = importlib.import_module(f"evaluator.devices.{kind}.trusted")
    return cast("TrustedMemory", module.Memory(judge_cores, device_cores))
