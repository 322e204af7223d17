"""The closed profile's check of the Python text: what its allow table does not list is refused.

Invariant: the only attribute ever assigned is one of `self`; the only calls are to what the source
defines itself, to listed builtins and to listed names of listed modules.
Not for: open profiles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evaluator.gate.names import Names
from evaluator.gate.report import Finding, finding
from evaluator.gate.table import AllowTable, Globs

_STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("fallback", "try/except: a kernel must not fall back"),
    ast.TryStar: ("fallback", "try/except: a kernel must not fall back"),
    ast.AsyncFunctionDef: ("statement", "async code"),
    ast.Await: ("statement", "async code"),
    ast.Delete: ("statement", "del"),
    ast.Yield: ("statement", "a generator"),
    ast.YieldFrom: ("statement", "a generator"),
    ast.Match: ("statement", "match"),
}
_OWN_DUNDERS = frozenset({"__init__", "__name__"})
_PREFIXES = ("torch", "triton", "math", "typing", "functools", "dataclasses", "collections", "__future__")


class Allowlist:
    """One pass over the tree of one source."""

    def __init__(self, tree: ast.Module, names: Names, table: AllowTable) -> None:
        self._tree = tree
        self._names = names
        self._table = table
        self._imports = Globs(table.imports)
        self._listed = Globs(table.names)
        self._banned = Globs(table.banned_attributes)
        self._flags = Globs(table.flags)
        self._own = {name for node in ast.walk(tree) for name in _binds(node)}

    def findings(self) -> Iterator[Finding]:
        """Everything that is not on the list."""
        for node in ast.walk(self._tree):
            line = getattr(node, "lineno", 1)
            if type(node) in _STATEMENTS:
                rule, words = _STATEMENTS[type(node)]
                yield finding(rule, line, words)
            for rule, words in self._node(node):
                yield finding(rule, line, words)

    def _node(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            yield from self._import([alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom):
            yield from self._import([f"{node.module or ''}.{alias.name}" for alias in node.names])
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from self._name(node)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        yield from self._stores(node)

    def _import(self, names: list[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            if name not in self._imports:
                yield "import", f"import of {name} is not on the allowlist"

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[str, str]]:
        if isinstance(node.ctx, ast.Store):
            return
        modules = {name for name in self._names.resolve(node) if name.split(".")[0] in _PREFIXES and "()" not in name and "[" not in name}
        for name in modules:
            if name not in self._listed:
                yield "attribute", f"{name} is not on the allowlist"
        if not modules and node.attr in self._banned and node.attr not in _OWN_DUNDERS:
            yield "attribute", f".{node.attr} is not on the allowlist"

    def _name(self, node: ast.Name) -> Iterator[tuple[str, str]]:
        if node.id not in self._own and node.id not in self._table.builtins and node.id not in _OWN_DUNDERS:
            yield "name", f"{node.id} is not on the allowlist"

    def _call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        functions = self._names.resolve(node.func)
        if "torch.utils.cpp_extension.load_inline" in functions:
            yield from self._load_inline(node)
        if not isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            yield "call", "a call of an expression that has no name"
        if isinstance(node.func, ast.Call) and self._names.resolve(node.func.func) & {"super"}:
            yield "call", "a call of super() itself"

    def _load_inline(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        for keyword in node.keywords:
            if keyword.arg not in self._table.load_inline:
                yield "load_inline", f"load_inline({keyword.arg}=...) is not on the allowlist"
            elif keyword.arg in ("extra_cflags", "extra_cuda_cflags"):
                yield from self._compiler_flags(keyword.value)

    def _compiler_flags(self, node: ast.expr) -> Iterator[tuple[str, str]]:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value not in self._flags:
                yield "compiler-flag", f"compiler flag {part.value!r} is not on the allowlist"
            elif isinstance(part, (ast.Name, ast.Call, ast.BinOp, ast.JoinedStr)):
                yield "compiler-flag", "compiler flags must be literal"

    def _stores(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                yield "monkeypatch", f"assignment to .{node.attr}: only self.x = ... is allowed"
            elif node.attr in self._banned:
                yield "monkeypatch", f"assignment to self.{node.attr}"
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if any(name.split(".")[0] in _PREFIXES for name in self._names.resolve(node.value)):
                yield "monkeypatch", "assignment into a module"
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                if self._names.resolve(base) - {"torch.nn.Module", "nn.Module", "Module", "object"} - self._own:
                    yield "class", "a class may only derive from nn.Module"


def _binds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
