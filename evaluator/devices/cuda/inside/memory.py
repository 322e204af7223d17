"""Tensors over device memory that torch did not allocate.

Not for: allocating (`driver`).
"""

from __future__ import annotations

from typing import Any

import torch


class _Bytes:
    """The CUDA array interface over a range of addresses."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def raw(address: int, size: int) -> torch.Tensor:
    """`size` bytes at a device address, as uint8; the memory must outlive the tensor."""
    return torch.as_tensor(_Bytes(address, size), device="cuda")


def typed(memory: torch.Tensor, offset: int, item: dict[str, Any]) -> torch.Tensor:
    """One tensor (`dtype`, `elements`, `shape`, `strides` in elements) at a byte offset of raw memory."""
    dtype = getattr(torch, item["dtype"])
    if item["elements"] == 0:
        return torch.empty(item["shape"], dtype=dtype, device=memory.device)
    width = torch.empty(0, dtype=dtype).element_size()
    flat = memory[offset : offset + item["elements"] * width].view(dtype)
    return flat.as_strided(item["shape"], item["strides"])
