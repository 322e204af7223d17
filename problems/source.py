"""What a problem's Python source defines, read without running it.

Invariant: works on text alone, so the console and the daemon can describe a problem without torch.
`with_constants` and `for_device` change only the spans they name; every other byte stays.
Not for: judging a candidate (the static gate does that).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from problems.errors import BadProblem

_CUDA = re.compile(r"cuda(:\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Top-level names of a module."""

    names: frozenset[str]
    """Everything bound at the top: classes, functions, assignments, imports."""
    functions: Mapping[str, tuple[str, ...]]
    """Parameter names by function."""
    constants: frozenset[str]
    """Names assigned exactly one plain value each, which a case may replace."""
    docstring: str
    """Of the class `Model` where there is one, else of the module."""


def outline(text: str, *, where: str) -> Outline:
    """Read a module's top level; BadProblem with file and line on a syntax error."""
    tree = _parse(text, where)
    functions = {node.name: _parameters(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = {name for node in tree.body for name in _bound(node)}
    return Outline(names=frozenset(names), functions=functions, constants=frozenset(_constant_values(tree)), docstring=_docstring(tree))


def with_constants(text: str, constants: Mapping[str, Any], *, where: str) -> str:
    """`text` with the values of module constants replaced; BadProblem names an unknown one."""
    values = _constant_values(_parse(text, where))
    unknown = sorted(set(constants) - set(values))
    if unknown:
        raise BadProblem(f"{where} assigns no constant {unknown[0]!r}", "constants of this module: " + ", ".join(sorted(values)))
    offsets = _Offsets(text)
    return offsets.replace([(*offsets.span(values[name]), repr(value)) for name, value in constants.items()])


def for_device(text: str, device: str, *, where: str) -> str:
    """On a CPU, read the device name `cuda` (a string of its own, or `.cuda()`) as `cpu`; elsewhere unchanged.

    GPU MODE references name their device in the source; this lets the same folder be checked without a GPU.
    """
    if not device.startswith("cpu"):
        return text
    tree = _parse(text, where)
    offsets = _Offsets(text)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    spans: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            if _CUDA.fullmatch(node.value):
                spans.append((*offsets.span(node), repr("cpu")))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
            last = offsets.span(node.func)[1]
            spans.append((last - len("cuda"), last, "cpu"))
    return offsets.replace(spans)


class _Offsets:
    """Byte positions of syntax nodes in a text."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.expr) -> tuple[int, int]:
        """First byte and the byte after the last of `node`."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column

    def replace(self, spans: list[tuple[int, int, str]]) -> str:
        """The text with each span replaced; spans do not overlap."""
        raw = self.raw
        for first, last, new in sorted(spans, reverse=True):
            raw = raw[:first] + new.encode() + raw[last:]
        return raw.decode()


def _parse(text: str, where: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        place = f"{where}, line {line}" if line else where
        raise BadProblem(f"{place}: not valid Python ({getattr(error, 'msg', None) or error})", "mend the syntax") from error


def _parameters(node: ast.FunctionDef) -> tuple[str, ...]:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return tuple(names) + (("**",) if arguments.kwarg else ())


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _constant_values(tree: ast.Module) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _docstring(tree: ast.Module) -> str:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return ast.get_docstring(node) or ""
    return ast.get_docstring(tree) or ""
