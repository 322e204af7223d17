"""The GPU MODE format: a folder with `task.yml`, `reference.py` and what its `files:` name.

`reference.py` defines `generate_input(**spec)`, `ref_kernel(data)` and `check_implementation(data, output)`;
a candidate answers with `custom_kernel(data)`. The problem's files are `task.yml`, `ratchet.yml` where there is
one, and the declared files except the submission, the templates and `eval.py` (the evaluator takes that place).
A declared `utils.py` or `task.py` that is not there is replaced by our own compatibility module.
Invariant: parsing never runs any of it. Not for: generating or checking (`problems.workload`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from problems import files, sidecar, source
from problems.errors import BadProblem
from problems.model import Case, Kind, Problem, SizeClass, SourceFile

COMPATIBILITY = Path(__file__).resolve().parent / "compatibility"
REQUIRED = ("generate_input", "ref_kernel", "check_implementation")
SIDECAR = "ratchet.yml"
_REPLACED = ("utils.py", "task.py")


def parse(folder: Path, *, key: str, builtin: bool = False) -> Problem:
    """Read one task folder; BadProblem says what is missing."""
    if not (folder / "task.yml").is_file():
        raise BadProblem(f"{folder} has no task.yml", "a GPU MODE folder holds task.yml, task.py and reference.py")
    task = sidecar.load_mapping(files.read_text(folder / "task.yml"), where=str(folder / "task.yml"))
    _refuse_other_kinds(task, folder)
    listed = _sources(folder, task)
    texts = files.read_all(listed)
    outline = source.outline(texts["reference.py"], where=str(folder / "reference.py"))
    missing = [name for name in REQUIRED if name not in outline.names]
    if missing:
        raise BadProblem(f"{folder / 'reference.py'} defines no {', no '.join(missing)}", "it must define " + ", ".join(REQUIRED))
    extra = sidecar.parse(texts[SIDECAR], where=str(folder / SIDECAR)) if SIDECAR in texts else sidecar.Sidecar()
    cases = _cases(task, extra, folder)
    _check_arguments(cases, outline.functions.get("generate_input"), folder)
    return Problem(
        key=key,
        title=extra.title or folder.name.removesuffix("_py").replace("_", " "),
        description=str(task.get("description") or extra.description),
        format="gpumode",
        root=folder,
        sources=listed,
        sha256=files.digest(texts),
        entry="custom_kernel",
        reference_entry="ref_kernel",
        atol=0.0 if extra.atol is None else extra.atol,
        rtol=0.0 if extra.rtol is None else extra.rtol,
        cases_by_device=cases,
        parameters_constant=extra.parameters_constant,
        elementwise=extra.atol is not None or extra.rtol is not None,
        builtin=builtin,
    )


def _refuse_other_kinds(task: Mapping[str, Any], folder: Path) -> None:
    if str(task.get("lang", "py")) != "py":
        raise BadProblem(f"{folder / 'task.yml'}: lang is {task['lang']!r}", "only Python tasks (`lang: py`) are supported")
    if task.get("multi_gpu"):
        raise BadProblem(f"{folder / 'task.yml'}: the task needs several GPUs", "only tasks for one device are supported")


def _sources(folder: Path, task: Mapping[str, Any]) -> tuple[SourceFile, ...]:
    found = {"task.yml": folder / "task.yml"}
    if (folder / SIDECAR).is_file():
        found[SIDECAR] = folder / SIDECAR
    for name, path in _declared(folder, task).items():
        found[name] = path if path.is_file() or name not in _REPLACED else COMPATIBILITY / name
    if not found["reference.py"].is_file():
        raise BadProblem(f"{found['reference.py']} does not exist", "task.yml must name the reference under `files:`")
    return tuple(SourceFile(name=name, path=path.resolve()) for name, path in found.items())


def _declared(folder: Path, task: Mapping[str, Any]) -> dict[str, Path]:
    """Declared files by the name they have beside the reference."""
    found = {name: folder / name for name in ("reference.py", *_REPLACED)}
    for item in task.get("files") or ():
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not isinstance(item.get("source"), str):
            raise BadProblem(f"{folder / 'task.yml'}: files: each needs `name` and `source`", 'write {"name": ..., "source": ...}')
        name = item["name"]
        if item["source"].startswith("@") or name == "eval.py":
            continue
        if Path(name).name != name or name in ("task.yml", SIDECAR):
            raise BadProblem(f"{folder / 'task.yml'}: files: {name!r} is not a plain file name", "name files without folders")
        found[name] = folder / item["source"]
    return found


def _cases(task: Mapping[str, Any], extra: sidecar.Sidecar, folder: Path) -> dict[str, tuple[Case, ...]]:
    where = str(folder / "task.yml")
    benchmarks = _specs(task.get("benchmarks"), kind="benchmark", size_class="benchmark", where=f"{where}: benchmarks")
    tests = _specs(task.get("tests"), kind="test", size_class="test", where=f"{where}: tests")
    declared = _distinct((*benchmarks, *tests))
    cases = {device: extra.cases_by_device.get(device) or declared for device in sidecar.DEVICES}
    for device, group in cases.items():
        if not any(case.kind == "benchmark" for case in group):
            raise BadProblem(f"{where}: no benchmarks for {device}", "list at least one benchmark case")
    return cases


def _specs(specs: Any, *, kind: Kind, size_class: SizeClass, where: str) -> tuple[Case, ...]:
    if specs is None:
        return ()
    if not isinstance(specs, Sequence) or isinstance(specs, str):
        raise BadProblem(f"{where}: expected a list", 'write - {"size": 1024, "seed": 1}')
    checked = [sidecar.plain_params(spec, where=where) for spec in specs]
    return tuple(Case(name=_name(params), params=params, kind=kind, size_class=size_class) for params in checked)


def _distinct(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases with `_2`, `_3`, ... behind names that came before, tests and benchmarks alike."""
    taken: set[str] = set()
    found: list[Case] = []
    for case in cases:
        names = itertools.chain([case.name], (f"{case.name}_{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        found.append(dataclasses.replace(case, name=name))
    return tuple(found)


def _name(params: Mapping[str, Any]) -> str:
    """`batch20_n32_cond1_dense`: values with their names, strings alone, the seed left out."""
    parts = [_part(name, value) for name, value in params.items() if name != "seed"]
    return "_".join(parts) or "default"


def _part(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return name + "x".join(str(item) for item in value if not isinstance(item, (list, dict)))[:40]
    return f"{name}{str(value).lower() if isinstance(value, bool) else value}"


def _check_arguments(cases: Mapping[str, Sequence[Case]], accepted: Sequence[str] | None, folder: Path) -> None:
    if accepted is None or "**" in accepted:
        return
    for group in cases.values():
        for case in group:
            unknown = [name for name in case.params if name not in accepted]
            if unknown:
                raise BadProblem(f"{folder}: generate_input takes no {unknown[0]!r} (case {case.name})", "it takes " + ", ".join(accepted))
    if "rank" in accepted and not any("rank" in case.params for group in cases.values() for case in group):
        raise BadProblem(f"{folder}: generate_input needs a rank: a task for several GPUs", "only tasks for one device are supported")
