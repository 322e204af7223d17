"""The shapes of the gate's data: what a row of a profile says.

Invariant: a profile is data. A new rule is a new row; only a new *kind* of row needs code.
Not for: the rows themselves (`open_profile`, `seed_profile`).
"""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.gate.report import Severity


class Where(enum.StrEnum):
    """Which use of a native name a row speaks of."""

    ANY = "any"
    """Every occurrence of the identifier."""
    FREE = "free"
    """Called or taken the address of as a free function (for names that honest methods share)."""
    DEFINED = "defined"
    """Defined, #defined, named as a symbol in a string, or its address taken; calling it is fine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ban:
    """Names that a profile does not accept; `names` are shell globs, matched with case."""

    rule: str
    names: tuple[str, ...]
    why: str
    """What it is and what to do instead, one phrase."""
    severity: Severity = Severity.REFUSE
    where: Where = Where.ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBan:
    """Contents of string literals that a profile does not accept: `pattern` is searched for."""

    rule: str
    pattern: str
    why: str
    severity: Severity = Severity.REFUSE
    assembly: bool = False
    """Only inside an asm statement."""
    python: bool = False
    """Also in Python's strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTable:
    """Rules for C++/CUDA text."""

    names: tuple[Ban, ...]
    strings: tuple[TextBan, ...]
    headers: tuple[Ban, ...] = ()
    allowed_headers: tuple[str, ...] | None = None
    """None: every header that `headers` does not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTable:
    """Rules for the Python text."""

    reads: tuple[Ban, ...]
    """Dotted names that must not be used, after imports and aliases are resolved."""
    writes: tuple[Ban, ...]
    """Dotted names that must not be assigned, deleted or patched."""
    decoders: tuple[str, ...] = ()
    """Calls that turn data into bytes or code; refused together with a sink (an opaque blob)."""
    sinks: tuple[str, ...] = ()
    loaders: tuple[str, ...] = ()
    """Calls that load native code from a file: their argument must be a literal name."""
    kernels: tuple[str, ...] = ()
    """Names whose use means that the source defines a kernel of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowTable:
    """The allowlist of a closed profile: what is not listed is refused."""

    imports: tuple[str, ...]
    names: tuple[str, ...]
    """Dotted names below an imported module."""
    builtins: frozenset[str]
    banned_attributes: tuple[str, ...]
    """Attributes of any other object."""
    flags: tuple[str, ...]
    """Compiler flags, as globs."""
    load_inline: frozenset[str]
    """Keywords of `load_inline`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One named set of rules."""

    name: str
    native: NativeTable
    python: PythonTable
    allow: AllowTable | None = None
    """None: an open profile, everything is accepted that no row names."""


class Globs:
    """Many globs as one compiled test."""

    def __init__(self, globs: Iterable[str]) -> None:
        items = tuple(globs)
        self._exact = frozenset(g for g in items if not _is_glob(g))
        patterns = [fnmatch.translate(g) for g in items if _is_glob(g)]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self._exact or (self._pattern is not None and self._pattern.match(name) is not None)


def _is_glob(text: str) -> bool:
    return any(c in text for c in "*?[")
