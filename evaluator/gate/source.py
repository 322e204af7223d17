"""Reading a candidate's text and the first questions about it.

Invariant: what cannot be read as a source is a UsageError with its mend; what is Python but lacks its
entry point or does not parse is the candidate's `compile_error`, never an exception.
Not for: rules (`evaluator.gate.scan`).
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from evaluator.errors import UsageError

MAX_BYTES = 1 << 20


def read_source(path: str | Path) -> str:
    """The text of a candidate file: not empty, UTF-8, at most 1 MiB; else UsageError (exit 2)."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", "give the path of a readable Python file") from error
    return check_source(raw, name=str(file))


def check_source(raw: bytes, *, name: str) -> str:
    """Decode a candidate's bytes; UsageError names `name` and the mend."""
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{name}: over 1 MiB", "a candidate is one source text; generate large tables at run time")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not UTF-8 (byte {error.start})", "save the file as UTF-8") from error
    if not text.strip():
        raise UsageError(f"{name}: empty", "a candidate defines its entry point (ModelNew or custom_kernel)")
    return text


def parse(source: str) -> ast.Module:
    """The tree of a source; whatever keeps it from parsing is a SyntaxError with its line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate's invalid escapes are not our caller's warnings
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"the source cannot be parsed: {error or type(error).__name__}", ("<candidate>", 1, 0, None)) from error


def syntax_error(source: str) -> str | None:
    """The compile error of a source in words with its line, or None where it parses."""
    try:
        parse(source)
    except SyntaxError as error:
        return describe(error)
    return None


def describe(error: SyntaxError) -> str:
    """One line: what, where, and the text there."""
    where = f"line {error.lineno or 1}" + (f", column {error.offset}" if error.offset else "")
    shown = f": {error.text.strip()[:120]}" if error.text else ""
    return f"SyntaxError: {error.msg} ({where}){shown}"


def has_entry(source: str, entry: str) -> bool:
    """Whether `entry` is a class, a function or an assigned or imported name at the top level.

    Raises SyntaxError where the source does not parse.
    """
    return any(entry in _defined(node) for node in _top_level(parse(source).body))


def imports_module(source: str, module: str) -> bool:
    """Whether the source itself imports `module` or part of it, at any depth; what its imports load in turn does not count."""
    names: list[str] = []
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return any(name.partition(".")[0] == module for name in names)


def _top_level(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of a module, with those inside top-level if, try and with blocks."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                found += _top_level(getattr(node, field, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                found += _top_level(handler.body)
    return found


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return {node.target.id}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in node.names}
    return set()
