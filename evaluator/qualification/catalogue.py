"""Where every row of the catalogue of known exploits stands.

Invariant: each row names a control, or says why a CPU candidate cannot express it, or what else holds.
Not for: the exploits' description (the catalogue itself) or their expectation (`controls.yaml`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import yaml

_FILE = Path(__file__).parent / "catalogue.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One row of the catalogue."""

    row: str
    controls: tuple[str, ...] = ()
    why: str = ""
    """Reason where no control carries it, or what holds besides."""


@functools.cache
def coverage() -> dict[str, Coverage]:
    """Every row by its id (`A01` ... `H13`)."""
    data = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return {row: Coverage(row=row, controls=tuple(value.get("controls", ())), why=value.get("why", "")) for row, value in data.items()}
