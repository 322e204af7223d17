"""What a candidate left changed in its own process: timing primitives, numerics flags, threads.

A tripwire that may refuse and on which nothing rests: native code can undo it, and then the judge's
own clock and comparison still hold.
Not for: proving that a candidate is honest.
"""

from __future__ import annotations

import time
from typing import Any

import torch

_TIMERS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time", "sleep")
_COMPARISONS = ("allclose", "isclose", "equal", "testing.assert_close", "Tensor.allclose", "Tensor.equal")


class Watch:
    """A snapshot of identities and flags, taken before the candidate is loaded."""

    def __init__(self) -> None:
        self._timers = {name: getattr(time, name) for name in _TIMERS}
        self._comparisons = {name: _resolve(name) for name in _COMPARISONS}
        self._flags = _flags()

    def changes(self) -> list[str]:
        """In words: everything that is not as it was."""
        found = [f"time.{name} was replaced" for name, value in self._timers.items() if getattr(time, name, None) is not value]
        found += [f"torch.{name} was replaced" for name, value in self._comparisons.items() if _resolve(name) is not value]
        now = _flags()
        found += [f"{name} changed from {self._flags[name]} to {now[name]}" for name in now if now[name] != self._flags[name]]
        return found


def _resolve(name: str) -> Any:
    target: Any = torch
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def _flags() -> dict[str, Any]:
    return {
        "default dtype": str(torch.get_default_dtype()),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "reduced precision of convolutions": torch.backends.cudnn.allow_tf32,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "grad mode": torch.is_grad_enabled(),
        "flush denormal": _denormals_flushed(),
        "threads": torch.get_num_threads(),
    }


def _denormals_flushed() -> bool:
    return bool((torch.tensor([1e-39]) * 1.0).item() == 0.0)
