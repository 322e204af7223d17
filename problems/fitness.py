"""Whether a problem can tell a right answer from a trivial one.

A problem is unfit for a case when its own tolerance accepts zeros, a constant, a copy of an input, or the right
answer to other inputs; or when the reference does not agree with itself. Invariant: every trial answer goes
through `Workload.check`, the same call that judges candidates.
Not for: judging candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from problems.comparison import as_tuple
from problems.model import Case
from problems.workload import Workload


def unfit_reason(workload: Workload, case: Case, *, seed: int) -> str | None:
    """Why the case is unfit, in words, or None.

    Draws inputs and weights from `seed` (and from a neighbour of it for the answer to other inputs).
    """
    inputs = workload.inputs(case, seed)
    reference = workload.reference(case, seed)
    expected = _answer(reference, inputs)
    again = workload.check(case, inputs, _answer(reference, inputs), expected)
    if not again.ok:
        return f"the reference does not agree with itself: {again.words}"
    for name, output in _trivial(inputs, expected):
        if workload.check(case, inputs, output, expected).ok:
            return f"{name} passes as an answer"
    if workload.check(case, inputs, _answer(reference, workload.inputs(case, seed ^ 1)), expected).ok:
        return "the answer to other inputs passes: the output does not depend on them"
    return None


def _trivial(inputs: tuple[Any, ...], expected: Any) -> Iterator[tuple[str, Any]]:
    """Named answers that take no work, in the form of `expected`."""
    import torch

    parts = as_tuple(expected)
    yield "all zeros", _like(expected, [torch.zeros_like(part) for part in parts])
    means = [part.double().mean() if not part.is_complex() else part.mean() for part in parts]
    yield "the mean everywhere", _like(expected, [torch.full_like(part, mean.item()) for part, mean in zip(parts, means, strict=True)])
    yield "the mean over rows", _like(expected, [_row_mean(part) for part in parts])
    for index, given in enumerate(inputs):
        copies = [_copy_as(given, part) for part in parts]
        if all(copy is not None for copy in copies):
            yield f"a copy of input {index}", _like(expected, copies)


def _row_mean(part: Any) -> Any:
    wide = part if part.is_complex() else part.double()
    if part.ndim == 0 or part.shape[0] < 2:
        wide = wide * 0
    return (wide.mean(dim=0, keepdim=True) if part.ndim else wide).expand(part.shape).to(part.dtype).clone()


def _copy_as(given: Any, part: Any) -> Any | None:
    """`given` in the form of one output where its shape allows it."""
    import torch

    if not isinstance(given, torch.Tensor):
        return None
    if given.shape == part.shape:
        return given.to(part.dtype).clone()
    if given.shape[: part.ndim] == part.shape:
        return given.flatten(part.ndim)[..., 0].to(part.dtype).clone()
    return None


def _like(expected: Any, parts: list[Any]) -> Any:
    return tuple(parts) if isinstance(expected, (tuple, list)) else parts[0]


def _answer(reference: Any, inputs: tuple[Any, ...]) -> Any:
    """The reference on copies, so that it cannot change what the next call sees."""
    import torch

    with torch.no_grad():
        return reference(*(leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in inputs))
