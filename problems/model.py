"""The records of a problem: what it is called, where its files are, which cases it has.

Invariant: a `Problem` is plain data read without running any of the problem's code, and its
`sha256` covers the name and content of every file in `sources`.
Not for: tensors, references or comparisons (`problems.workload`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from problems.errors import BadProblem

Format = Literal["kernelbench", "gpumode"]
Kind = Literal["benchmark", "test"]
SizeClass = Literal["benchmark", "smaller", "larger", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One shape, spectrum or size of a problem."""

    name: str
    """Unique within the problem's cases of one device."""
    params: Mapping[str, Any]
    """Module constants (KernelBench) or keyword arguments of `generate_input` (GPU MODE); JSON values."""
    kind: Kind
    """`benchmark` is timed; `test` only ever serves correctness."""
    size_class: SizeClass
    """Against the benchmark's sizes; `test` where the problem does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of a problem."""

    name: str
    """The name under which the problem's other files see it (`utils.py`), also the name that is hashed."""
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A reference and its cases."""

    key: str
    """`builtin:<name>`, `kernel:<id>` or an absolute path."""
    title: str
    description: str
    """What a solver is told in words; may be empty."""
    format: Format
    root: Path
    """The module (KernelBench) or the folder (GPU MODE)."""
    sources: tuple[SourceFile, ...]
    sha256: str
    """Over names and contents of `sources`; see `problems.files.digest`."""
    entry: Literal["ModelNew", "custom_kernel"]
    """The name a candidate must define."""
    reference_entry: Literal["Model", "ref_kernel"]
    atol: float
    rtol: float
    cases_by_device: Mapping[str, tuple[Case, ...]]
    """`cpu` and `cuda`: every case, benchmarks first."""
    parameters_constant: bool = False
    """True where the problem allows work on the weights to be kept between calls."""
    elementwise: bool = True
    """False where only the folder's own check decides: it declares no tolerance of ours."""
    builtin: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of every file that the hash covers."""
        return tuple(source.path for source in self.sources)

    def cases(self, device: str, *, kind: Kind = "benchmark") -> tuple[Case, ...]:
        """The cases of `device` (`cpu`, `cuda`, `cuda:0`, ...) of one kind."""
        return tuple(case for case in self.cases_by_device[device_kind(device)] if case.kind == kind)

    def case(self, device: str, name: str) -> Case:
        """The case called `name`; BadProblem names the known ones."""
        known = self.cases_by_device[device_kind(device)]
        for case in known:
            if case.name == name:
                return case
        raise BadProblem(f"{self.key} has no case {name!r} on {device}", "known cases: " + ", ".join(c.name for c in known))


def device_kind(device: str) -> str:
    """`cpu` or `cuda`: whose cases a device runs."""
    return "cpu" if device.split(":", 1)[0] == "cpu" else "cuda"
