"""The small YAML file beside a problem: title, tolerance and the cases of each device.

    title: Gated running mean
    atol: 1.0e-4
    rtol: 1.0e-4
    parameters: vary            # or constant: work on the weights may be kept between calls
    cpu:
      benchmarks: {short: {batch: 2, length: 1024}}
      smaller: {tiny: {batch: 1, length: 8}}
      larger: {big: {batch: 3, length: 2048}}
    cuda: ...

`<name>.yml` beside a KernelBench module (values replace the module's constants), `ratchet.yml` in a
GPU MODE folder (values are keyword arguments of `generate_input`). Invariant: plain YAML, no tags,
unknown keys refused. Not for: the GPU MODE `task.yml` itself (`problems.gpumode`).
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from problems.errors import BadProblem
from problems.model import Case, Kind, SizeClass

DEVICES = ("cpu", "cuda")
_TOP = ("title", "description", "atol", "rtol", "parameters", *DEVICES)
_GROUPS: Mapping[str, tuple[Kind, SizeClass]] = {
    "benchmarks": ("benchmark", "benchmark"),
    "smaller": ("test", "smaller"),
    "larger": ("test", "larger"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """What the file says; None where it says nothing."""

    title: str | None = None
    description: str = ""
    atol: float | None = None
    rtol: float | None = None
    parameters_constant: bool = False
    cases_by_device: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)


def parse(text: str, *, where: str) -> Sidecar:
    """Read one sidecar; BadProblem names the key that is wrong."""
    data = load_mapping(text, where=where)
    for key in data:
        if key not in _TOP:
            near = difflib.get_close_matches(str(key), _TOP, n=1)
            raise BadProblem(f"{where}: unknown key {key!r}", f"did you mean {near[0]!r}?" if near else "keys: " + ", ".join(_TOP))
    parameters = data.get("parameters", "vary")
    if parameters not in ("vary", "constant"):
        raise BadProblem(f"{where}: parameters is {parameters!r}", "write `vary` or `constant`")
    return Sidecar(
        title=None if data.get("title") is None else str(data["title"]),
        description=str(data.get("description") or ""),
        atol=tolerance(data.get("atol"), where=f"{where}: atol"),
        rtol=tolerance(data.get("rtol"), where=f"{where}: rtol"),
        parameters_constant=parameters == "constant",
        cases_by_device={device: _cases(data[device], where=f"{where}: {device}") for device in DEVICES if device in data},
    )


def load_mapping(text: str, *, where: str) -> dict[str, Any]:
    """A YAML mapping; BadProblem with the line on a syntax error."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}, line {mark.line + 1}" if mark is not None else where
        raise BadProblem(f"{place}: not valid YAML ({getattr(error, 'problem', None) or 'cannot be read'})", "mend the file") from error
    if not isinstance(data, dict):
        raise BadProblem(f"{where}: expected a mapping", "write `key: value` lines")
    return data


def plain_params(value: Any, *, where: str) -> dict[str, Any]:
    """A mapping of names to JSON values; BadProblem otherwise."""
    if not isinstance(value, dict) or not all(isinstance(name, str) and name.isidentifier() for name in value):
        raise BadProblem(f"{where}: expected a mapping of names to values", "write {name: value, ...}")
    try:
        return cast("dict[str, Any]", json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise BadProblem(f"{where}: only numbers, strings, booleans, lists and mappings ({error})", "use plain values") from error


def tolerance(value: Any, *, where: str) -> float | None:
    """A finite number >= 0, also when YAML reads `1e-4` as a string."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or isinstance(value, bool):
        raise BadProblem(f"{where} is {value!r}", "write a number such as 1.0e-4")
    return number


def _cases(groups: Any, *, where: str) -> tuple[Case, ...]:
    if not isinstance(groups, dict) or not set(groups) <= set(_GROUPS):
        raise BadProblem(f"{where}: expected {', '.join(_GROUPS)}", "each is a mapping of case names to values")
    found: list[Case] = []
    for group, (kind, size_class) in _GROUPS.items():
        for name, params in (groups.get(group) or {}).items():
            checked = plain_params(params, where=f"{where} {group} {name}")
            found.append(Case(name=str(name), params=checked, kind=kind, size_class=size_class))
    names = [case.name for case in found]
    if len(set(names)) != len(names):
        raise BadProblem(f"{where}: two cases have the same name", "give every case of a device its own name")
    return tuple(found)
