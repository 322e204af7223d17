"""The slot pool: shared input buffers of one runner, and the private copy of what they hold.

Before a call every slot gets fresh values; which one counts is told to the runner only with the
post. Expected outputs are computed from the private copy, after the answer.
Invariant: two runners never share a buffer, and no value is drawn twice.
Not for: comparing outputs (`trusted.examiner`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evaluator.devices.memory import TrustedMemory

ALIGNMENT = 256

Draw = Callable[[int], "tuple[Any, ...]"]


class Pool:
    """Input slots of one case for one runner."""

    def __init__(self, name: str, *, slots: int, sample: tuple[Any, ...], memory: TrustedMemory) -> None:
        self.layout, self.slot_bytes = layout_of(sample)
        self.slots = slots
        self.block = memory.block(name, max(1, slots * self.slot_bytes))
        self._views = [self._view(index * self.slot_bytes) for index in range(slots)]
        self.private: list[tuple[Any, ...]] = [sample] * slots

    def fill(self, draw: Draw, seed: int) -> None:
        """Draw fresh values into every slot."""
        for index in range(self.slots):
            values = draw(seed + index)
            self.private[index] = values
            for view, value in zip(self._views[index], values, strict=True):
                if view is not None:
                    _copy(view, value)

    def close(self) -> None:
        """Drop the buffers."""
        self._views.clear()
        self.private.clear()
        self.block.close()

    def _view(self, base: int) -> list[torch.Tensor | None]:
        filled = [item["kind"] == "tensor" and item["elements"] for item in self.layout]
        return [
            self.block.tensor(base + item["offset"], item) if is_filled else None
            for item, is_filled in zip(self.layout, filled, strict=True)
        ]


def layout_of(values: tuple[Any, ...]) -> tuple[list[dict[str, Any]], int]:
    """Where each input lies in a slot, and the slot's size in bytes."""
    layout: list[dict[str, Any]] = []
    offset = 0
    for value in values:
        if not isinstance(value, torch.Tensor):
            layout.append({"kind": "value", "value": value})
            continue
        elements = _span(value)
        layout.append({"kind": "tensor", "offset": offset, "elements": elements, **describe(value)})
        offset += -(-elements * value.element_size() // ALIGNMENT) * ALIGNMENT
    return layout, offset


def describe(tensor: torch.Tensor) -> dict[str, Any]:
    """Dtype, shape and strides, as plain data."""
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "strides": list(tensor.stride())}


def _copy(view: torch.Tensor, value: torch.Tensor) -> None:
    if view.shape != value.shape or view.dtype != value.dtype:
        raise ValueError(
            f"an input is {value.dtype} {tuple(value.shape)}, {view.dtype} {tuple(view.shape)} in another draw of the same case"
        )
    span = _span(view)
    if span < view.numel():  # several places share one element (expanded): it is copied once
        if value.stride() != view.stride():
            raise ValueError(f"an input's strides are {value.stride()}, {view.stride()} in another draw of the same case")
        view, value = view.as_strided((span,), (1,)), value.as_strided((span,), (1,))
    view.copy_(value)


def _span(tensor: torch.Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    return int(1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)))
