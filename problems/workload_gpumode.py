"""GPU MODE folders at work: `generate_input(**spec)`, `ref_kernel(data)`, `check_implementation(data, output)`.

The seed of a spec is replaced by the caller's. The folder's own check decides; before it, an output of another
form, or not finite where the reference is, is refused, and where the folder's sidecar gives a tolerance it must hold
as well. `reference.py` may also define `refresh_input(data, seed)` (see `Workload.refresh`).
Invariant: the check works on copies, so that it cannot change what is compared later.
Not for: KernelBench modules (`problems.workload_kernelbench`).
"""

from __future__ import annotations

import inspect
from typing import Any

from problems import comparison, layout
from problems.errors import BadProblem
from problems.execution import ModuleSet, describe
from problems.model import Case, Problem
from problems.workload import Reference, Workload

_SEED_BITS = 0x7FFF_FFFF
_NOT_RUN = ("task.yml", "ratchet.yml")


class GpuModeWorkload(Workload):
    """One GPU MODE folder on one device."""

    call_style = "data"

    def __init__(self, problem: Problem, device: str, texts: dict[str, str]) -> None:
        super().__init__(problem, device, texts)
        self._modules = ModuleSet(self._texts, label=problem.key)
        self._layouts: dict[str, dict[str, Any]] = {}

    def init_args(self, case: Case) -> list[Any]:
        """A function has none."""
        return []

    def constants(self, case: Case) -> dict[str, Any]:
        """Sizes are arguments here, not constants."""
        return {}

    def inputs(self, case: Case, seed: int) -> tuple[Any, ...]:
        """Leaves of what `generate_input` returns, on the device."""
        import torch

        data = self._generate(case, seed)
        self._layouts[case.name], leaves = layout.split(data, where=f"{self.problem.key}: generate_input()")
        return tuple(leaf.detach().to(self.device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)

    def data_layout(self, case: Case) -> dict[str, Any]:
        """The nesting of `generate_input`'s data."""
        if case.name not in self._layouts:
            self.inputs(case, 0)
        return self._layouts[case.name]

    def reference(self, case: Case, seed: int) -> Reference:
        """`ref_kernel` on flat inputs; lists in its answer become tuples."""
        kernel = self._function("ref_kernel")
        shape = self.data_layout(case)

        def call(*inputs: Any) -> Any:
            return _tuples(kernel(layout.join(shape, inputs)))

        return call

    def check(self, case: Case, inputs: tuple[Any, ...], output: Any, expected: Any) -> comparison.Comparison:
        """Form and finiteness, then the declared tolerance, then the folder's own check."""
        problem = comparison.same_form(output, expected, dtypes=False) or comparison.not_finite(output, expected)
        if problem:
            return comparison.Comparison(False, None, problem)
        error = None
        if self.problem.elementwise:
            part = comparison.compare(output, expected, atol=self.problem.atol, rtol=self.problem.rtol)
            if not part.ok:
                return part
            error = part.max_abs_error
        ok, words = self._own_check(case, inputs, output)
        return comparison.Comparison(ok, error, "" if ok else words)

    def runner_files(self, case: Case | None = None) -> dict[str, str]:
        """Every Python file of the folder."""
        return {name: text for name, text in self._texts.items() if name not in _NOT_RUN}

    def candidate_files(self) -> dict[str, str]:
        """`task.py` and `utils.py`, which submissions import."""
        return {name: self._texts[name] for name in ("task.py", "utils.py")}

    def refresh(self, case: Case, inputs: tuple[Any, ...], seed: int) -> tuple[Any, ...] | None:
        """The folder's own `refresh_input(data, seed)` where it has one."""
        change = getattr(self._modules.module("reference"), "refresh_input", None)
        if change is None:
            return None
        data = change(layout.join(self.data_layout(case), inputs), seed & _SEED_BITS)
        return layout.split(data, where=f"{self.problem.key}: refresh_input()")[1]

    def writable_inputs(self, case: Case) -> tuple[int, ...]:
        """Buffers that come uninitialised from `torch.empty`, or that the reference itself writes into."""
        import torch

        with _UninitialisedLog() as log:
            inputs = self.inputs(case, 0)
        tensors = {place: leaf for place, leaf in enumerate(inputs) if isinstance(leaf, torch.Tensor)}
        raw = {place for place, leaf in tensors.items() if leaf._version == 0 and leaf.untyped_storage().data_ptr() in log.storages}
        before = {place: leaf._version for place, leaf in tensors.items()}
        self.reference(case, 0)(*inputs)
        return tuple(sorted(raw | {place for place, leaf in tensors.items() if leaf._version != before[place]}))

    def _generate(self, case: Case, seed: int) -> Any:
        import torch

        generate = self._function("generate_input")
        arguments = dict(case.params)
        if "seed" in arguments or "seed" in inspect.signature(generate).parameters:
            arguments["seed"] = seed & _SEED_BITS
        torch.manual_seed(seed)
        try:
            with torch.no_grad():
                return generate(**arguments)
        except Exception as error:
            raise BadProblem(f"{self.problem.key}: generate_input({arguments}) raised {describe(error)}"[:400], self._mend()) from error

    def _own_check(self, case: Case, inputs: tuple[Any, ...], output: Any) -> tuple[bool, str]:
        import torch

        copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in inputs]
        try:
            answer = self._function("check_implementation")(layout.join(self.data_layout(case), copies), _copy(output))
        except Exception as error:
            return False, f"the check raised {describe(error)}"
        return _read_answer(answer)

    def _function(self, name: str) -> Any:
        return getattr(self._modules.module("reference"), name)

    def _mend(self) -> str:
        return "give cases that fit this device in ratchet.yml" if self.device.startswith("cpu") else "mend the problem"


class _UninitialisedLog:
    """Notes the storages that `torch.empty` and its kin hand out while it is entered."""

    def __enter__(self) -> _UninitialisedLog:
        import torch
        from torch.overrides import TorchFunctionMode

        log = self
        self.storages: set[int] = set()
        self._keep: list[Any] = []
        fresh = (torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty)

        class Mode(TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                made = func(*args, **(kwargs or {}))
                if func in fresh:
                    log.storages.add(made.untyped_storage().data_ptr())
                    log._keep.append(made)
                return made

        self._mode = Mode()
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, (tuple, list)) else value


def _copy(output: Any) -> Any:
    return tuple(part.clone() for part in output) if isinstance(output, (tuple, list)) else output.clone()


def _read_answer(answer: Any) -> tuple[bool, str]:
    """The forms of an answer in the field: `(bool, words)`, a bool, or words that are empty when right."""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], bool):
        return answer[0], str(answer[1])[:500]
    if isinstance(answer, bool):
        return answer, "" if answer else "the folder's check says no"
    if isinstance(answer, str):
        return answer == "", answer[:500]
    return False, f"check_implementation returned {type(answer).__name__}"
