"""The KernelBench format: one module with `Model`, `get_inputs` and `get_init_inputs`.

A candidate answers with `ModelNew`, constructed with the same arguments and called on the same inputs.
Invariant: parsing never runs the module. Without a sidecar there is one case, `default`, with the
module's own sizes on every device.
Not for: building or calling the model (`problems.workload`).
"""

from __future__ import annotations

import re
from pathlib import Path

from problems import files, sidecar, source
from problems.errors import BadProblem
from problems.model import Case, Problem, SourceFile

DEFAULT_TOLERANCE = 1e-4
"""KernelBench's absolute and relative tolerance for float32."""
REQUIRED = ("Model", "get_inputs", "get_init_inputs")
_DEFAULT_CASE = Case(name="default", params={}, kind="benchmark", size_class="benchmark")


def sources(path: Path) -> tuple[SourceFile, ...]:
    """The module and, where there is one, its sidecar `<name>.yml`."""
    found = [SourceFile(name=path.name, path=path)]
    beside = path.with_suffix(".yml")
    if beside.is_file():
        found.append(SourceFile(name=beside.name, path=beside))
    return tuple(found)


def parse(path: Path, *, key: str, builtin: bool = False) -> Problem:
    """Read one module and its sidecar; BadProblem says what is missing."""
    listed = sources(path)
    texts = files.read_all(listed)
    outline = source.outline(texts[path.name], where=str(path))
    missing = [name for name in REQUIRED if name not in outline.names]
    if missing:
        raise BadProblem(f"{path} defines no {', no '.join(missing)}", "a KernelBench module defines " + ", ".join(REQUIRED))
    extra = sidecar.parse(texts[listed[1].name], where=str(listed[1].path)) if len(listed) > 1 else sidecar.Sidecar()
    cases = {device: extra.cases_by_device.get(device) or (_DEFAULT_CASE,) for device in sidecar.DEVICES}
    for case in {id(c): c for group in cases.values() for c in group}.values():
        source.with_constants(texts[path.name], case.params, where=str(path))
    return Problem(
        key=key,
        title=extra.title or _title(path),
        description=extra.description or outline.docstring,
        format="kernelbench",
        root=path,
        sources=listed,
        sha256=files.digest(texts),
        entry="ModelNew",
        reference_entry="Model",
        atol=DEFAULT_TOLERANCE if extra.atol is None else extra.atol,
        rtol=DEFAULT_TOLERANCE if extra.rtol is None else extra.rtol,
        cases_by_device=cases,
        parameters_constant=extra.parameters_constant,
        builtin=builtin,
    )


def _title(path: Path) -> str:
    return re.sub(r"^\d+_", "", path.stem).replace("_", " ").strip()
