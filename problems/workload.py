"""A problem at work: inputs from a seed, the reference, the comparison. The only door to torch.

Used inside the evaluator's trusted process (and its runner, for the reference). Invariant: `inputs(case, seed)`
and `reference(case, seed)` are functions of their arguments: the same seed gives the same values, and what
runs is exactly what `problem.sha256` covers. An error of the problem's own code is a BadProblem, but what a
call of the reference raises comes through as it is.
Not for: candidates, clocks or verdicts.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from problems import comparison, files, source
from problems.model import Case, Problem

if TYPE_CHECKING:
    from torch import Tensor

CallStyle = Literal["module", "data"]
Reference = Callable[..., "Tensor | tuple[Tensor, ...]"]


def open_workload(problem: Problem, device: str) -> Workload:
    """Read the problem's files once more, compare their hash, and make them runnable on `device`."""
    from problems.workload_gpumode import GpuModeWorkload
    from problems.workload_kernelbench import KernelBenchWorkload

    texts = files.read_all(problem.sources)
    files.require_digest(problem.key, files.digest(texts), problem.sha256)
    kind = KernelBenchWorkload if problem.format == "kernelbench" else GpuModeWorkload
    return kind(problem, device, texts)


class Workload(abc.ABC):
    """One problem on one device."""

    call_style: CallStyle
    """`module`: forward(*inputs); `data`: custom_kernel(join(data_layout, inputs))."""

    def __init__(self, problem: Problem, device: str, texts: dict[str, str]) -> None:
        self.problem = problem
        self.device = device
        self._texts = {
            name: source.for_device(text, device, where=f"{problem.key} {name}") if name.endswith(".py") else text
            for name, text in texts.items()
        }

    def cases(self) -> list[Case]:
        """The benchmark cases of this device."""
        return list(self.problem.cases(self.device))

    def robustness_cases(self) -> list[Case]:
        """Cases at other sizes; empty where the problem declares none."""
        return list(self.problem.cases(self.device, kind="test"))

    @abc.abstractmethod
    def init_args(self, case: Case) -> list[Any]:
        """Arguments of `Model` and `ModelNew`, as JSON values; empty for `custom_kernel`."""

    @abc.abstractmethod
    def constants(self, case: Case) -> dict[str, Any]:
        """Module constants that hold for this case, as JSON values."""

    @abc.abstractmethod
    def inputs(self, case: Case, seed: int) -> tuple[Any, ...]:
        """Flat tuple of tensors on the device and plain values, drawn from `seed`."""

    @abc.abstractmethod
    def data_layout(self, case: Case) -> dict[str, Any]:
        """How the flat inputs form the data of a call (`problems.layout`), as JSON."""

    @abc.abstractmethod
    def reference(self, case: Case, seed: int) -> Reference:
        """The reference with weights drawn under `torch.manual_seed(seed)`, callable on the flat inputs."""

    @abc.abstractmethod
    def check(self, case: Case, inputs: tuple[Any, ...], output: Any, expected: Any) -> comparison.Comparison:
        """Whether `output` is right for `inputs`: (ok, max abs error, words)."""

    @abc.abstractmethod
    def runner_files(self, case: Case | None = None) -> dict[str, str]:
        """File name to text of all that must lie beside the reference where it runs; with the case's constants set."""

    def candidate_files(self) -> dict[str, str]:
        """File name to text of what a candidate may import: never the reference."""
        return {}

    def refresh(self, case: Case, inputs: tuple[Any, ...], seed: int) -> tuple[Any, ...] | None:
        """New inputs from old ones by a cheap random change that keeps the case's properties; None where undeclared."""
        return None

    def writable_inputs(self, case: Case) -> tuple[int, ...]:
        """Places of the flat inputs that a call may write into (output buffers passed in); usually none."""
        return ()
