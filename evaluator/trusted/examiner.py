"""References and comparison for one case: the only place that ever holds an answer.

Outputs arrive as raw bytes that were copied at the answer; dtype, shape and
finiteness are checked before values, and a comparison over nothing fails.
Not for: reading a runner's memory, or for deciding a status.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evaluator.devices.memory import TrustedMemory
from evaluator.trusted.pool import Pool
from problems.model import Case
from problems.workload import Workload


class Examiner:
    """The trusted side of one case."""

    def __init__(self, workload: Workload, case: Case) -> None:
        self._workload = workload
        self.case = case
        self._reference: Callable[..., Any] | None = None
        self.writable = frozenset(workload.writable_inputs(case))
        """Inputs that a call may write into: output buffers that the problem passes in."""

    def build_reference(self, seed: int) -> dict[str, torch.Tensor]:
        """Draw fresh weights; return the state that runners load."""
        self._reference = self._workload.reference(self.case, seed)
        state = getattr(self._reference, "state_dict", None)
        return {k: v.detach() for k, v in state().items() if isinstance(v, torch.Tensor)} if state is not None else {}

    def draw(self, seed: int) -> tuple[Any, ...]:
        """Fresh inputs from a seed that never reaches a runner."""
        return tuple(self._workload.inputs(self.case, seed))

    def expected(self, inputs: tuple[Any, ...]) -> Any:
        """The reference's answer to a private copy of inputs."""
        assert self._reference is not None
        with torch.no_grad():
            return self._reference(*(v.clone() if isinstance(v, torch.Tensor) else v for v in inputs))

    def compare(self, inputs: tuple[Any, ...], output: Any, expected: Any) -> tuple[bool, float | None, str]:
        """Right or wrong, the largest absolute error, and the first mismatch in words."""
        ok, error, words = self._workload.check(self.case, inputs, output, expected)
        return bool(ok), error, words

    def trivial_answers_that_pass(self, inputs: tuple[Any, ...]) -> list[str]:
        """Names of input-independent or trivial answers that the tolerance would accept."""
        expected = self.expected(inputs)
        return [name for name, answer in _trivial(inputs, expected).items() if self.compare(inputs, answer, expected)[0]]

    def reference_error(self, inputs: tuple[Any, ...]) -> tuple[bool, str]:
        """Whether the fp32 reference agrees with an fp64 oracle within the problem's tolerance."""
        expected = self.expected(inputs)
        oracle = self._oracle(inputs)
        if oracle is None:
            return True, "no fp64 oracle"
        cast = _map(lambda o, e: o.to(e.dtype), oracle, expected)
        ok, _, detail = self.compare(inputs, cast, expected)
        return ok, detail

    def _oracle(self, inputs: tuple[Any, ...]) -> Any:
        reference = self._reference
        if not isinstance(reference, torch.nn.Module):
            return None
        wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
        try:
            with torch.no_grad():
                return reference.double()(*wide)
        except (RuntimeError, TypeError):
            return None
        finally:
            reference.float()


def inputs_unchanged(pool: Pool, slot: int, memory: TrustedMemory, offsets: list[int] | None, *, writable: frozenset[int]) -> str:
    """Compare the runner's own view of a slot with the private copy; the first change in words.

    `offsets` are the tensors' places in the judge's page, where the runner's view has to be read out of it.
    """
    tensors = [(i, item) for i, item in enumerate(pool.layout) if item["kind"] == "tensor" and item["elements"]]
    places: list[int | None] = [None] * len(tensors) if offsets is None else [*offsets]
    for (index, item), offset in zip(tensors, places, strict=True):
        if index in writable:
            continue
        seen = memory.inputs(pool.block, slot * pool.slot_bytes, item, offset)
        if not torch.equal(_bits(seen), _bits(pool.private[slot][index])):
            return f"input {index} was changed"
    return ""


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as bytes: a NaN equals itself, a zero of another sign does not."""
    return tensor.contiguous().flatten().view(torch.uint8)


def _as_tuple(value: Any) -> tuple[torch.Tensor, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _map(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], left: Any, right: Any) -> Any:
    if isinstance(left, (tuple, list)):
        return tuple(function(a, b) for a, b in zip(left, right, strict=True))
    return function(left, right)


def _trivial(inputs: tuple[Any, ...], expected: Any) -> dict[str, Any]:
    answers = {
        "zeros": _map(lambda e, _: torch.zeros_like(e), expected, expected),
        "the output's mean": _map(
            lambda e, _: torch.full_like(e, e.double().mean().item()) if e.is_floating_point() else torch.zeros_like(e), expected, expected
        ),
    }
    first = _as_tuple(expected)[0]
    for index, value in enumerate(inputs):
        if (
            isinstance(value, torch.Tensor)
            and value.shape == first.shape
            and value.dtype == first.dtype
            and not isinstance(expected, (tuple, list))
        ):
            answers[f"a copy of input {index}"] = value.clone()
    return answers
