"""Counts and blanks launches of a candidate's Triton kernels, as `extension` does for compiled ones.

On a CPU device Triton's kernels run in its interpreter: one Python class launches them all.
Not for: deciding anything, and not for a device that compiles them. Standard library, torch and triton only: mounted into the sandbox.
"""

from __future__ import annotations

from typing import Any

from evaluator.runner import extension


def install(*, blank: bool) -> None:
    """Have every launch counted under `triton.<kernel>`; with `blank`, what it wrote is then overwritten with garbage."""
    from triton.runtime.interpreter import InterpretedFunction

    extension.set_blank(blank)
    launch = InterpretedFunction.run

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        called = launch if warmup else extension.counted(f"triton.{kernel.fn.__name__}", launch)
        return called(kernel, *args, grid=grid, warmup=warmup, **kwargs)

    InterpretedFunction.run = run
