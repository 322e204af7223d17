"""Stand-in for the `utils.py` that GPU MODE references import: seeding, comparison, determinism.

Written for this project; only the names and what callers rely on are those of the format. It lies beside
the reference under the name `utils.py`. Invariant: a comparison fails closed (other shape, NaN or Inf on one
side only, nothing to compare). Not for: our own packages, which never import it.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def set_seed(seed: int = 42) -> None:
    """Seed Python, numpy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def get_device(use_cuda: bool = True) -> torch.device:
    """The CUDA device where there is one and it is wanted, else the CPU."""
    return torch.device("cuda" if use_cuda and torch.cuda.is_available() else "cpu")


def verbose_allclose(
    received: torch.Tensor, expected: torch.Tensor, rtol: float = 1e-05, atol: float = 1e-08, max_print: int = 5
) -> list[str]:
    """Reasons why |received - expected| <= atol + rtol * |expected| does not hold everywhere; empty when it does."""
    problem = _incomparable(received, expected)
    if problem:
        return [problem]
    got, want = _wide(received), _wide(expected)
    same_special = (got == want) | (got.isnan() & want.isnan())
    close = (got - want).abs() <= atol + rtol * want.abs()
    return _mismatches(~torch.where(want.isfinite() & got.isfinite(), close, same_special), received, expected, max_print)


def verbose_allequal(received: torch.Tensor, expected: torch.Tensor, max_print: int = 5) -> list[str]:
    """Reasons why the two are not equal element by element; empty when they are."""
    problem = _incomparable(received, expected)
    return [problem] if problem else _mismatches(received != expected, received, expected, max_print)


def match_reference(
    data: Any, output: torch.Tensor, reference: Callable[[Any], torch.Tensor], rtol: float = 1e-05, atol: float = 1e-08
) -> tuple[bool, str]:
    """Compare `output` with what `reference` gives on `data`: (right, reasons)."""
    reasons = verbose_allclose(output, reference(data), rtol=rtol, atol=atol)
    return not reasons, "does not match the reference: " + "; ".join(reasons) if reasons else ""


def make_match_reference(reference: Callable[[Any], torch.Tensor], **tolerances: float) -> Callable[[Any, torch.Tensor], tuple[bool, str]]:
    """A `check_implementation` that compares with `reference` under the given rtol and atol."""

    def check_implementation(data: Any, output: torch.Tensor) -> tuple[bool, str]:
        return match_reference(data, output, reference, **tolerances)

    return check_implementation


class DeterministicContext:
    """Deterministic algorithms and no TF32 inside the block; everything as before after it."""

    def __enter__(self) -> "DeterministicContext":
        self._cudnn = (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic)
        self._algorithms = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
        self._workspace = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
        torch.use_deterministic_algorithms(True)
        return self

    def __exit__(self, *_: object) -> None:
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = self._cudnn
        torch.use_deterministic_algorithms(self._algorithms[0], warn_only=self._algorithms[1])
        if self._workspace is None:
            os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)


class DisableCuDNNTF32:
    """cuDNN without TF32 and deterministic inside the block."""

    def __enter__(self) -> "DisableCuDNNTF32":
        self._cudnn = (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic)
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
        return self

    def __exit__(self, *_: object) -> None:
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = self._cudnn


def clear_l2_cache() -> None:
    """Overwrite 256 MiB of device memory; nothing to do on a CPU."""
    _overwrite(256)


def clear_l2_cache_large() -> None:
    """Overwrite 1 GiB of device memory; nothing to do on a CPU."""
    _overwrite(1024)


def _overwrite(mebibytes: int) -> None:
    if torch.cuda.is_available():
        torch.empty(mebibytes << 18, dtype=torch.int32, device="cuda").fill_(1)


def _incomparable(received: Any, expected: torch.Tensor) -> str:
    if not isinstance(received, torch.Tensor):
        return f"expected a tensor, got {type(received).__name__}"
    if received.shape != expected.shape:
        return f"SIZE MISMATCH: got {tuple(received.shape)}, expected {tuple(expected.shape)}"
    return "nothing to compare: the reference is empty" if expected.numel() == 0 else ""


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value if value.is_complex() else value.to(torch.float64)


def _mismatches(wrong: torch.Tensor, received: torch.Tensor, expected: torch.Tensor, max_print: int) -> list[str]:
    count = int(wrong.count_nonzero())
    if count == 0:
        return []
    places = [tuple(place.tolist()) for place in wrong.nonzero()[:max_print]]
    shown = [f"ERROR AT {place}: {received[place]} {expected[place]}" for place in places]
    more = [f"... and {count - max_print} more mismatched elements."] if count > max_print else []
    return [f"Number of mismatched elements: {count}", *shown, *more]
