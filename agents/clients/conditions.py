"""Conditions and templates of session files: how scripted text reacts to measured answers.

A scope maps the label of a call to its answer (`ok` beside the answer's own fields). A path such as
`ab.verdict.cases.0.rho` reads from it. `{{path}}` in a text is replaced by the value, numbers with three
significant digits or as `{{path|.2f}}` asks; a missing value reads `n/a`.
Invariant: pure functions of (text, scope); no expression is ever evaluated as code.
Not for: the structure of a session (`clients.session`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MISSING = object()

_TEMPLATE = re.compile(r"\{\{\s*([^{}|]+?)\s*(?:\|\s*([^{}]*?)\s*)?\}\}")
_TESTS = ("is", "in", "above", "below", "present", "empty")


@dataclass(frozen=True, slots=True)
class Condition:
    """`all`, `any` and `not` of further conditions, or one test of the value at a path."""

    kind: str
    """`all`, `any`, `not` or one of the tests."""
    path: str = ""
    operand: Any = None
    parts: tuple[Condition, ...] = ()

    def holds(self, scope: Mapping[str, Any]) -> bool:
        """Whether the condition holds; a test of a missing value is false but for `present: false`."""
        if self.kind == "all":
            return all(part.holds(scope) for part in self.parts)
        if self.kind == "any":
            return any(part.holds(scope) for part in self.parts)
        if self.kind == "not":
            return not self.parts[0].holds(scope)
        return _test(self.kind, find(self.path, scope), self.operand)


def parse_condition(value: Any) -> Condition:
    """Read a condition; what is wrong with it is a ValueError."""
    if not isinstance(value, dict):
        raise ValueError("a condition is a mapping such as `{value: ab.decision, is: faster}`")
    for kind in ("all", "any"):
        if kind in value:
            if not isinstance(value[kind], list) or len(value) != 1:
                raise ValueError(f"`{kind}` holds a list of conditions and nothing else")
            return Condition(kind=kind, parts=tuple(parse_condition(part) for part in value[kind]))
    if "not" in value:
        return Condition(kind="not", parts=(parse_condition(value["not"]),))
    tests = [name for name in value if name != "value"]
    if "value" not in value or len(tests) != 1 or tests[0] not in _TESTS:
        raise ValueError(f"a condition has `value` and one of: {', '.join(_TESTS)}")
    return Condition(kind=tests[0], path=str(value["value"]), operand=value[tests[0]])


def find(path: str, scope: Mapping[str, Any]) -> Any:
    """The value at a dotted path (numbers index lists), or MISSING."""
    value: Any = scope
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, (list, tuple)) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def fill(value: Any, scope: Mapping[str, Any]) -> Any:
    """`value` with every template in it replaced; a string that is one bare template becomes the value itself."""
    if isinstance(value, str):
        return _fill_text(value, scope)
    if isinstance(value, Mapping):
        return {k: fill(v, scope) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [fill(v, scope) for v in value]
    return value


def _fill_text(text: str, scope: Mapping[str, Any]) -> Any:
    if type(text) is not str:
        return str(text)
    if (whole := _TEMPLATE.fullmatch(text)) and not whole[2]:
        found = find(whole[1], scope)
        return None if found is MISSING else found
    return _TEMPLATE.sub(lambda m: _shown(find(m[1], scope), m[2] or ""), text)


def _shown(value: Any, spec: str) -> str:
    if value is MISSING or value is None:
        return "n/a"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if spec:
            try:
                return format(value, spec)
            except ValueError:
                return str(value)
        return str(value) if isinstance(value, int) else f"{value:.3g}"
    return str(value)


def _test(kind: str, found: Any, operand: Any) -> bool:
    if kind == "present":
        return (found is not MISSING and found is not None) is bool(operand)
    if found is MISSING:
        return False
    if kind == "empty":
        return (not found) is bool(operand)
    if kind == "is":
        return bool(found == operand)
    if kind == "in":
        return found in (operand or ())
    number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return number and (found > operand if kind == "above" else found < operand)
