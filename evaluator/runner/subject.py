"""Loading and constructing what is run: a reference (`Model`, `ref_kernel`) or a candidate.

Invariant: a module is built under the seed it is given and, where names and shapes agree with the
reference's state, holds exactly that state; a difference is reported, never silently accepted.
Not for: compiling (the builder did that) and not for timing.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


class MissingEntry(Exception):
    """The source defines no such entry point."""


class Subject:
    """One loaded source with its entry point."""

    def __init__(self, path: str, *, entry: str, style: str, place: Callable[[torch.nn.Module], torch.nn.Module]) -> None:
        self.entry = entry
        self.style = style
        self._place = place
        self.module = _import(path)
        if not hasattr(self.module, entry):
            raise MissingEntry(f"the source defines no `{entry}`")
        self.forward: Callable[..., Any] = _missing
        self.model: torch.nn.Module | None = None

    def construct(self, *, seed: int, init_args: list[Any], data_layout: dict[str, Any] | None) -> None:
        """Build the model under `seed` (module style) or take the function (data style)."""
        target = getattr(self.module, self.entry)
        torch.manual_seed(seed)
        if self.style == "data":
            assert data_layout is not None
            self.forward = lambda *inputs: target(join(data_layout, inputs))
            return
        model = target(*init_args)
        if isinstance(model, torch.nn.Module):
            self.model = model = self._place(model)
        self.forward = model

    def load_state(self, state: dict[str, torch.Tensor]) -> list[str]:
        """Copy the reference's state where names and shapes agree; return what did not."""
        if self.model is None:
            return []
        own = self.model.state_dict()
        fitting = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape and own[k].dtype == v.dtype}
        self.model.load_state_dict(fitting, strict=False)
        return sorted((set(state) | set(own)) - set(fitting))

    def compile(self) -> None:
        """Replace `forward` by torch.compile of it (baseline only)."""
        self.forward = torch.compile(self.forward)


def join(layout: dict[str, Any], leaves: tuple[Any, ...]) -> Any:
    """The nested data of a call, as the problem's layout describes it."""
    if "leaf" in layout:
        return leaves[layout["leaf"]]
    if "dict" in layout:
        return {key: join(node, leaves) for key, node in layout["dict"]}
    items = [join(node, leaves) for node in layout.get("tuple", layout.get("list", []))]
    return tuple(items) if "tuple" in layout else items


def read_state(descriptor: int, entries: list[dict[str, Any]], size: int) -> dict[str, torch.Tensor]:
    """Copy a state dict out of a sealed descriptor that the trusted process wrote."""
    if not size:
        return {}
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as view:
        return {item["name"]: _read(view, item) for item in entries}


def _read(view: mmap.mmap, item: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, item["dtype"])
    if item["elements"] == 0:
        return torch.empty(item["shape"], dtype=dtype)
    raw = torch.frombuffer(bytearray(view[item["offset"] : item["offset"] + item["bytes"]]), dtype=dtype, count=item["elements"])
    return raw.view(item["shape"])


def _import(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("candidate", path)
    if spec is None or spec.loader is None:
        raise MissingEntry("the source cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module


def _missing(*_: Any) -> Any:
    raise MissingEntry("called before it was constructed")
