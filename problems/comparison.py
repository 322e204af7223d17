"""Comparing an output with the reference's, element by element, in float64.

Invariant: fails closed. A right answer has the reference's type, shape, dtype and device, is finite where
the reference is, and there is something to compare; integers and booleans are compared exactly.
Not for: problems whose answer is not unique (a folder's own `check_implementation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Comparison(NamedTuple):
    """Outcome of one comparison."""

    ok: bool
    max_abs_error: float | None
    """None where nothing could be compared."""
    words: str
    """First mismatch; empty when ok."""


def compare(output: Any, expected: Any, *, atol: float, rtol: float) -> Comparison:
    """Hold |output - expected| <= atol + rtol * |expected| for a tensor or a tuple of tensors."""
    problem = same_form(output, expected, dtypes=True)
    if problem:
        return Comparison(False, None, problem)
    worst = 0.0
    for index, (got, want) in enumerate(zip(as_tuple(output), as_tuple(expected), strict=True)):
        part = _compare_one(got, want, atol, rtol)
        if not part.ok:
            where = f"output {index}: " if len(as_tuple(expected)) > 1 else ""
            return Comparison(False, part.max_abs_error, where + part.words)
        worst = max(worst, part.max_abs_error or 0.0)
    return Comparison(True, worst, "")


def same_form(output: Any, expected: Any, *, dtypes: bool) -> str:
    """Why `output` has not the type, number, shapes (and dtypes) of `expected`; empty when it has."""
    if isinstance(expected, (tuple, list)) and not isinstance(output, (tuple, list)):
        return f"expected {len(expected)} tensors, got {type(output).__name__}"
    got, want = as_tuple(output), as_tuple(expected)
    if len(got) != len(want):
        return f"expected {len(want)} tensors, got {len(got)}"
    for index, (g, w) in enumerate(zip(got, want, strict=True)):
        problem = _one_form(g, w, dtypes)
        if problem:
            return f"output {index}: {problem}" if len(want) > 1 else problem
    return ""


def not_finite(output: Any, expected: Any) -> str:
    """Where `output` is NaN or Inf although `expected` is finite; empty when nowhere."""
    for got, want in zip(as_tuple(output), as_tuple(expected), strict=True):
        bad = ~_wide(got).isfinite() & _wide(want).isfinite()
        if bool(bad.any()):
            return f"{int(bad.sum())} of {want.numel()} elements are NaN or Inf where the reference is finite"
    return ""


def as_tuple(value: Any) -> Sequence[Any]:
    """A tuple or list as it is, anything else as the only element of one."""
    return value if isinstance(value, (tuple, list)) else (value,)


def _one_form(got: Any, want: Any, dtypes: bool) -> str:
    import torch

    if type(got) is not torch.Tensor:
        return f"expected a torch.Tensor, got {type(got).__name__}"
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    if dtypes and got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.device.type != want.device.type:
        return f"on {got.device}, expected {want.device}"
    if got.layout != want.layout:
        return f"layout {got.layout}, expected {want.layout}"
    return "nothing to compare: the reference's output is empty" if want.numel() == 0 else ""


def _compare_one(got: Tensor, want: Tensor, atol: float, rtol: float) -> Comparison:
    if not want.dtype.is_floating_point and not want.dtype.is_complex:
        wrong = got != want
        return Comparison(not bool(wrong.any()), None, _worst(wrong, (got != want).double(), got, want))
    g, w = _wide(got), _wide(want)
    finite = w.isfinite()
    if not bool(finite.any()):
        return Comparison(False, None, "nothing to compare: the reference has no finite element")
    problem = not_finite(got, want)
    if problem:
        return Comparison(False, None, problem)
    error = (g - w).abs().where(finite, 0.0)
    special = ~finite & (g != w) & ~(g.isnan() & w.isnan())
    wrong = (error > atol + rtol * w.abs().where(finite, 0.0)) | special
    return Comparison(not bool(wrong.any()), float(error.max()), _worst(wrong, error, got, want))


def _worst(wrong: Tensor, error: Tensor, got: Tensor, want: Tensor) -> str:
    count = int(wrong.sum())
    if count == 0:
        return ""
    flat = int(error.where(wrong, -1.0).flatten().argmax())
    place: list[int] = []
    for size in reversed(want.shape):
        flat, index = divmod(flat, size)
        place.insert(0, index)
    at = tuple(place)
    return f"{count} of {want.numel()} elements wrong; at {at}: got {got[at].item():.7g}, expected {want[at].item():.7g}"


def _wide(value: Tensor) -> Tensor:
    import torch

    return value.to(torch.complex128 if value.dtype.is_complex else torch.float64)
