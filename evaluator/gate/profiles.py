"""Loads the profiles: `profiles/open.yaml` and `profiles/seed.yaml` are the data, this only reads it.

Invariant: a malformed profile is an error when it is loaded, never a rule that silently does nothing.
Not for: a run's own wishes (`evaluator.gate.policy`).
"""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from evaluator.errors import UsageError
from evaluator.gate.report import Severity
from evaluator.gate.table import AllowTable, Ban, NativeTable, Profile, PythonTable, TextBan, Where

_HERE = Path(__file__).parent / "profiles"
NAMES = ("open", "seed")


@functools.cache
def load_profile(name: str) -> Profile:
    """The profile of this name; UsageError for any other."""
    if name not in NAMES:
        raise UsageError(f"unknown gate profile {name!r}", f"use one of: {', '.join(NAMES)}")
    data = yaml.safe_load((_HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    base = load_profile(data["extends"]) if "extends" in data else None
    native, python = data.get("native", {}), data.get("python", {})
    return Profile(
        name=name,
        native=_native(native, base.native if base else None),
        python=_python(python, base.python if base else None),
        allow=_allow(data["allow"]) if "allow" in data else None,
    )


def _native(data: Mapping[str, Any], base: NativeTable | None) -> NativeTable:
    return NativeTable(
        names=(base.names if base else ()) + _bans(data.get("names", [])),
        strings=(base.strings if base else ()) + tuple(_text_ban(row) for row in data.get("strings", [])),
        headers=(base.headers if base else ()) + _bans(data.get("headers", [])),
        allowed_headers=_words(data["allowed_headers"]) if "allowed_headers" in data else (base.allowed_headers if base else None),
    )


def _python(data: Mapping[str, Any], base: PythonTable | None) -> PythonTable:
    def inherited(key: str) -> tuple[str, ...]:
        return _words(data[key]) if key in data else (getattr(base, key) if base else ())

    return PythonTable(
        reads=(base.reads if base else ()) + _bans(data.get("reads", [])),
        writes=(base.writes if base else ()) + _bans(data.get("writes", [])),
        decoders=inherited("decoders"),
        sinks=inherited("sinks"),
        loaders=inherited("loaders"),
        kernels=inherited("kernels"),
    )


def _allow(data: Mapping[str, Any]) -> AllowTable:
    exceptions = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    return AllowTable(
        imports=_words(data["imports"]),
        names=_words(data["names"]),
        builtins=frozenset(_words(data["builtins"])) | exceptions,
        banned_attributes=_words(data["banned_attributes"]),
        flags=_words(data["flags"]),
        load_inline=frozenset(_words(data["load_inline"])),
    )


def _bans(rows: list[dict[str, Any]]) -> tuple[Ban, ...]:
    return tuple(
        Ban(
            rule=row["rule"],
            names=_words(row["names"]),
            why=row["why"],
            severity=Severity(row.get("severity", "refuse")),
            where=Where(row.get("where", "any")),
        )
        for row in rows
    )


def _text_ban(row: dict[str, Any]) -> TextBan:
    re.compile(row["pattern"])
    return TextBan(
        rule=row["rule"],
        pattern=row["pattern"],
        why=row["why"],
        severity=Severity(row.get("severity", "refuse")),
        assembly=bool(row.get("assembly", False)),
        python=bool(row.get("python", False)),
    )


def _words(text: str) -> tuple[str, ...]:
    words = tuple(text.split())
    if not words:
        raise ValueError("a row of a gate profile names nothing")
    return words
