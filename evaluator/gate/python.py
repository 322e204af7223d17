"""Scan of the Python text by a profile's open rows: what is used, what is written to, what is opaque.

Invariant: pure, on the AST; comments and the mere presence of a word never match.
Not for: the closed allowlist (`evaluator.gate.allowlist`) or native text (`evaluator.gate.native`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from evaluator.gate.names import Names
from evaluator.gate.report import Finding, finding
from evaluator.gate.table import Ban, Globs, PythonTable

_SETTERS = frozenset({"setattr", "delattr", "builtins.setattr", "builtins.delattr"})
_DUNDER_SETTERS = frozenset({"__setattr__", "__delattr__", "__setitem__", "__delitem__", "update", "pop", "setdefault", "clear", "popitem"})
_PATCHERS = frozenset(f"{module}.patch{kind}" for module in ("unittest.mock", "mock") for kind in ("", ".object", ".dict"))
_BLOB = re.compile(r"[A-Za-z0-9+/=_\-]{1500,}|(?:\\x[0-9a-fA-F]{2}){400,}|(?:[0-9a-fA-F]{2}){1000,}")
_LONG_BYTES = 1500


class PythonScan:
    """One pass over the tree of one source."""

    def __init__(self, tree: ast.Module, names: Names, table: PythonTable) -> None:
        self._tree = tree
        self._names = names
        self._table = table
        self._reads = [(ban, Globs(ban.names)) for ban in table.reads]
        self._writes = [(ban, Globs(ban.names)) for ban in table.writes]
        self._loaders = Globs(table.loaders)
        self.used: dict[str, ast.AST] = {}
        """Every dotted name that is used, with its first place."""
        for node in ast.walk(tree):
            for name in self._meaning(node):
                self.used.setdefault(name, node)

    def findings(self) -> Iterator[Finding]:
        """Everything that a row matches."""
        for name, node in self.used.items():
            yield from _matches(self._reads, name, node)
        for node in ast.walk(self._tree):
            for target in self._written(node):
                yield from self._first_write(target, node)
            if isinstance(node, ast.Call):
                yield from self._loaded(node)
        yield from self._opaque()

    def defines_kernel(self) -> bool:
        """Whether any known way of writing a kernel is used."""
        kernels = Globs(self._table.kernels)
        return any(name in kernels for name in self.used)

    def _meaning(self, node: ast.AST) -> set[str]:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return {alias.name if isinstance(node, ast.Import) else f"{node.module or ''}.{alias.name}" for alias in node.names}
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            return self._names.resolve(node)
        return set()

    def _written(self, node: ast.AST) -> Iterator[str]:
        """Dotted names that a statement or call writes to."""
        for target in _targets(node):
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                yield from self._names.stored(target)
        if isinstance(node, ast.Call):
            yield from self._call_writes(node)

    def _call_writes(self, node: ast.Call) -> Iterator[str]:
        functions = self._names.resolve(node.func)
        if functions & _SETTERS and len(node.args) >= 2:
            yield from self._members(node.args[0], node.args[1])
        elif functions & _PATCHERS and node.args:
            yield from self._patched(node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _DUNDER_SETTERS and node.args + node.keywords:
            yield from self._method_writes(node, node.func)
        elif functions & {"operator.setitem", "operator.delitem", "dict.update", "dict.__setitem__"} and node.args:
            yield from (f"{base.removesuffix('.__dict__')}.?" for base in self._names.resolve(node.args[0]))

    def _method_writes(self, node: ast.Call, method: ast.Attribute) -> Iterator[str]:
        if method.attr in ("__setattr__", "__delattr__"):
            owner, name = (
                (node.args[0], node.args[1]) if len(node.args) >= 3 else (method.value, node.args[0] if node.args else method.value)
            )
            yield from self._members(owner, name)
            return
        for base in self._names.resolve(method.value):
            if base.endswith(".__dict__") or base == "sys.modules":
                yield f"{base.removesuffix('.__dict__')}.?"

    def _members(self, owner: ast.expr, name: ast.expr) -> Iterator[str]:
        text = self._names.fold(name)
        yield from (f"{base}.{text or '?'}" for base in self._names.resolve(owner))

    def _patched(self, node: ast.Call) -> Iterator[str]:
        text = self._names.fold(node.args[0])
        if text is not None:
            yield text
        elif len(node.args) >= 2:
            yield from self._members(node.args[0], node.args[1])
        else:
            yield from (f"{base}.?" for base in self._names.resolve(node.args[0]))

    def _first_write(self, name: str, node: ast.AST) -> Iterator[Finding]:
        for ban, globs in self._writes:
            if name in globs:
                yield finding(ban.rule, _line(node), f"{name}: {ban.why}", ban.severity)
                return

    def _loaded(self, node: ast.Call) -> Iterator[Finding]:
        loaders = {name for name in self._names.resolve(node.func) if name in self._loaders}
        if loaders and node.args and not _is_plain_library(node.args[0]):
            yield finding("opaque-code", node.lineno, f"{min(loaders)} of a file that is not a literal library name")

    def _opaque(self) -> Iterator[Finding]:
        decoders, sinks = Globs(self._table.decoders), Globs(self._table.sinks)
        sinking = sorted(name for name in self.used if name in sinks)
        if not sinking:
            return
        for name, node in self.used.items():
            if name in decoders:
                yield finding("opaque-code", _line(node), f"{name} beside {sinking[0]}: write the source as text")
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and _is_blob(node.value):
                yield finding("opaque-code", node.lineno, f"a literal of {len(node.value)} characters that is no text, beside {sinking[0]}")


def _is_blob(value: str | bytes) -> bool:
    return len(value) >= _LONG_BYTES if isinstance(value, bytes) else _BLOB.search(value) is not None


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))


def _is_plain_library(node: ast.expr) -> bool:
    """A literal library name without a path of its own (`libcuda.so.1`, an absolute system path)."""
    if not isinstance(node, ast.Constant):
        return False
    value = node.value
    return isinstance(value, str) and ("/" not in value or value.startswith(("/usr/", "/lib")))


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Every expression that a statement stores to or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        for target in node.targets:
            yield from _flat(target)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _flat(node.target)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _flat(node.optional_vars)


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _flat(element)
    elif isinstance(target, ast.Starred):
        yield from _flat(target.value)
    else:
        yield target


def _matches(bans: list[tuple[Ban, Globs]], name: str, node: ast.AST) -> Iterator[Finding]:
    for ban, globs in bans:
        if name in globs:
            yield finding(ban.rule, _line(node), f"{name}: {ban.why}", ban.severity)
