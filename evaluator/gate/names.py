"""What a Python expression means to a scan: dotted names behind imports and aliases, folded strings.

Scopes are flattened: a name means everything it is ever bound to in the source. That over-approximates,
which is right for rules about modules; an attribute of an object that is no module stays `x.attr`.
Invariant: nothing is imported or executed; work is linear in the source.
Not for: types or data flow beyond simple aliases.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_ROUNDS = 3
_MAX_MEANINGS = 16
_MAX_TEXT = 1 << 20
_UNKNOWN = "0"
"""Stands for a part of an f-string that only the running program knows."""
_IMPORTERS = frozenset({"__import__", "builtins.__import__", "importlib.import_module", "importlib.__import__"})
_GETATTR = frozenset({"getattr", "builtins.getattr", "inspect.getattr_static"})


class Names:
    """Bindings of one source: `resolve` an expression to dotted names, `fold` one to its text."""

    def __init__(self, tree: ast.AST) -> None:
        self._means: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        bindings = [pair for node in nodes for pair in _bindings(node)]
        for _ in range(_ROUNDS):
            for name, value in bindings:
                self._bind(name, value)

    def resolve(self, node: ast.expr) -> set[str]:
        """Dotted names that `node` may mean; empty where it is no name at all."""
        if isinstance(node, ast.Name):
            return self._means.get(node.id, {node.id})
        if isinstance(node, ast.Attribute):
            bases = self.resolve(node.value)
            if node.attr == "__class__":
                return {base.removesuffix("()") for base in bases}
            return {f"{base}.{node.attr}" for base in bases} or {f"?.{node.attr}"}
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return self.resolve(node.body) | self.resolve(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.resolve(node.value)
        return set()

    def fold(self, node: ast.expr) -> str | None:
        """The text of a string expression made of literals, `+`, `*`, `%`-free f-strings, `join` and single-valued names."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            texts = self._texts.get(node.id, set())
            return next(iter(texts)) if len(texts) == 1 else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _joined(self.fold(node.left), self.fold(node.right))
        if isinstance(node, ast.JoinedStr):
            return "".join(self._part(value) for value in node.values)
        if isinstance(node, ast.Call):
            return self._folded_call(node)
        return None

    def _part(self, node: ast.expr) -> str:
        folded = self.fold(node.value if isinstance(node, ast.FormattedValue) else node)
        return _UNKNOWN if folded is None else folded

    def _folded_call(self, node: ast.Call) -> str | None:
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in ("join", "strip", "lower", "replace", "format"):
            return None
        base = self.fold(function.value)
        if base is None or function.attr in ("strip", "lower", "format"):
            return base if base is None or function.attr != "lower" else base.lower()
        if function.attr == "replace":
            parts = [self.fold(argument) for argument in node.args[:2]]
            return base.replace(str(parts[0]), str(parts[1])) if len(parts) == 2 and None not in parts else base
        if len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)):
            pieces = [self.fold(element) for element in node.args[0].elts]
            return base.join(p for p in pieces if p is not None)
        return None

    def _subscript(self, node: ast.Subscript) -> set[str]:
        key = self.fold(node.slice)
        bases = self.resolve(node.value)
        if key is None:
            return {f"{base}[]" for base in bases}
        return {_member(base, key) for base in bases}

    def stored(self, target: ast.Attribute | ast.Subscript) -> set[str]:
        """Dotted names that a store to `target` changes.

        An entry of sys.modules is the table's, not the module's; what a call has returned is the source's own.
        """
        if isinstance(target, ast.Subscript) and "sys.modules" in self.resolve(target.value):
            return {"sys.modules.?"}
        return {name for name in self.resolve(target) if "()" not in name}

    def _call(self, node: ast.Call) -> set[str]:
        functions = self.resolve(node.func)
        if functions & _IMPORTERS and node.args:
            return {self.fold(node.args[0]) or "?"}
        if functions & _GETATTR and len(node.args) >= 2:
            name = self.fold(node.args[1])
            return {f"{base}.{name or '?'}" for base in self.resolve(node.args[0])}
        if functions & {"vars", "builtins.vars"} and node.args:
            return {f"{base}.__dict__" for base in self.resolve(node.args[0])}
        if functions & {"globals", "builtins.globals", "vars", "locals"}:
            return {"<globals>.__dict__"}
        if functions & {"type", "builtins.type"} and len(node.args) == 1:
            return {name.removesuffix("()") for name in self.resolve(node.args[0])}
        method = node.func
        if isinstance(method, ast.Attribute) and method.attr in ("get", "__getitem__", "setdefault", "pop") and node.args:
            key = self.fold(node.args[0])
            return set() if key is None else {_member(base, key) for base in self.resolve(method.value)}
        if isinstance(method, ast.Attribute) and method.attr in ("__getattribute__", "__getattr__") and node.args:
            name = self.fold(node.args[-1])
            bases = self.resolve(node.args[0]) if len(node.args) > 1 else self.resolve(method.value)
            return {f"{base}.{name or '?'}" for base in bases}
        return {f"{name}()" for name in functions}

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self._add(alias.asname or alias.name, f"{node.module or ''}.{alias.name}")
            elif alias.asname:
                self._add(alias.asname, alias.name)
            else:
                self._add(alias.name.split(".")[0], alias.name.split(".")[0])

    def _bind(self, name: str, value: ast.expr) -> None:
        text = self.fold(value)
        if text is not None:
            if len(text) <= _MAX_TEXT:
                self._texts.setdefault(name, set()).add(text)
            return
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp)):
            for meaning in self.resolve(value) - {name}:
                if meaning.count(".") < 8 and len(meaning) < 200:
                    self._add(name, meaning)

    def _add(self, name: str, meaning: str) -> None:
        meanings = self._means.setdefault(name, {name})
        if len(meanings) < _MAX_MEANINGS:
            meanings.add(meaning)


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Pairs of a bound name and the expression it is bound to."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.Tuple, ast.List)):
        for element in node.iter.elts:
            yield from _unpacked(node.target, element)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _unpacked(node.optional_vars, node.context_expr)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        yield from _defaults(positional[len(positional) - len(node.defaults) :], node.defaults)
        yield from _defaults(node.kwonlyargs, node.kw_defaults)


def _defaults(names: Iterable[ast.arg], values: Iterable[ast.expr | None]) -> Iterator[tuple[str, ast.expr]]:
    for name, value in zip(names, values, strict=False):
        if value is not None:
            yield name.arg, value


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _unpacked(one, part)


def _member(base: str, key: str) -> str:
    """`sys.modules["time"]` is time, `time.__dict__["x"]` is time.x, anything else base[key]."""
    if base == "sys.modules":
        return key
    return f"{base.removesuffix('.__dict__')}.{key}" if base.endswith(".__dict__") else f"{base}[{key}]"


def _joined(left: str | None, right: str | None) -> str | None:
    if left is None and right is None:
        return None
    return f"{left or ''}{right or ''}"
