"""KernelBench modules at work: `Model(*get_init_inputs())` called on `get_inputs()`.

As in KernelBench the model stays in training mode and is built under one seed; inputs are drawn on the
device under another. A module may also define `refresh_inputs(inputs, seed)` (see `Workload.refresh`).
Invariant: a case's constants are set in the text before the module runs, so that sizes derived from them follow.
Not for: GPU MODE folders (`problems.workload_gpumode`).
"""

from __future__ import annotations

import json
from typing import Any

from problems import comparison, layout, source
from problems.errors import BadProblem
from problems.execution import ModuleSet, describe
from problems.model import Case, Problem
from problems.workload import Reference, Workload


class KernelBenchWorkload(Workload):
    """One KernelBench module on one device."""

    call_style = "module"

    def __init__(self, problem: Problem, device: str, texts: dict[str, str]) -> None:
        super().__init__(problem, device, texts)
        self._modules: dict[str, ModuleSet] = {}

    def init_args(self, case: Case) -> list[Any]:
        """What `get_init_inputs()` returns with the case's constants."""
        arguments = self._call(case, "get_init_inputs")
        try:
            plain: list[Any] = json.loads(json.dumps(list(arguments)))
        except (TypeError, ValueError) as error:
            raise BadProblem(
                f"{self.problem.key}: get_init_inputs() returned {describe(error)}", "return numbers, strings and lists"
            ) from error
        return plain

    def constants(self, case: Case) -> dict[str, Any]:
        """The case's own values."""
        return dict(case.params)

    def inputs(self, case: Case, seed: int) -> tuple[Any, ...]:
        """What `get_inputs()` returns under `seed`, moved to the device and detached."""
        import torch

        torch.manual_seed(seed)
        with torch.device(self.device), torch.no_grad():
            drawn = self._call(case, "get_inputs")
        if not isinstance(drawn, (list, tuple)):
            raise BadProblem(f"{self.problem.key}: get_inputs() returned {type(drawn).__name__}", "return a list of inputs")
        shape, leaves = layout.split(tuple(drawn), where=f"{self.problem.key}: get_inputs()")
        if any("leaf" not in node for node in shape["tuple"]):
            raise BadProblem(f"{self.problem.key}: get_inputs() returned nested inputs", "return a flat list")
        return tuple(leaf.detach().to(self.device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)

    def data_layout(self, case: Case) -> dict[str, Any]:
        """A plain tuple of the inputs."""
        return {"tuple": [{"leaf": index} for index in range(len(self.inputs(case, 0)))]}

    def reference(self, case: Case, seed: int) -> Reference:
        """The model itself (it has `state_dict()`), without gradients."""
        import torch

        arguments = self.init_args(case)
        torch.manual_seed(seed)
        try:
            model = self._module(case).Model(*arguments).to(self.device)
        except Exception as error:
            raise BadProblem(f"{self.problem.key}: Model({arguments}) raised {describe(error)}"[:400], "mend the problem") from error
        return model.requires_grad_(False)  # type: ignore[no-any-return]

    def check(self, case: Case, inputs: tuple[Any, ...], output: Any, expected: Any) -> comparison.Comparison:
        """Element by element under the problem's tolerance."""
        return comparison.compare(output, expected, atol=self.problem.atol, rtol=self.problem.rtol)

    def runner_files(self, case: Case | None = None) -> dict[str, str]:
        """The module alone, as `reference.py`."""
        return {"reference.py": self._text(case)}

    def refresh(self, case: Case, inputs: tuple[Any, ...], seed: int) -> tuple[Any, ...] | None:
        """The module's own `refresh_inputs(inputs, seed)` where it has one."""
        change = getattr(self._module(case), "refresh_inputs", None)
        return None if change is None else tuple(change(inputs, seed))

    def _text(self, case: Case | None) -> str:
        text = self._texts[self.problem.root.name]
        return text if case is None else source.with_constants(text, case.params, where=self.problem.key)

    def _module(self, case: Case) -> Any:
        key = json.dumps(dict(case.params), sort_keys=True)
        if key not in self._modules:
            self._modules[key] = ModuleSet({"reference.py": self._text(case)}, label=self.problem.key)
        return self._modules[key].module("reference")

    def _call(self, case: Case, name: str) -> Any:
        try:
            return getattr(self._module(case), name)()
        except BadProblem:
            raise
        except Exception as error:
            raise BadProblem(f"{self.problem.key}: {name}() raised {describe(error)}", "mend the problem") from error
