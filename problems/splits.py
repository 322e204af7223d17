"""The frozen probe set: which keys it holds and the hash that fixes them.

Invariant: `verify_probe` passes only while the list in the data file hashes to the pinned value.
Not for: loading problems (`problems.registry`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from problems.errors import ProblemChanged

_DATA = Path(__file__).resolve().parent / "data" / "kernelbench_probe.json"


def probe_keys() -> list[str]:
    """The ten keys of the frozen probe set, sorted."""
    return sorted(f"kernel:{name}" for name in _facts()["probe_ids"])


def keys_hash(keys: Iterable[str]) -> str:
    """sha256 of the keys, sorted, each followed by a newline."""
    return hashlib.sha256("".join(f"{key}\n" for key in sorted(keys)).encode()).hexdigest()


def pinned_probe_hash() -> str:
    """The value that the probe set must hash to."""
    return str(_facts()["probe_hash"])


def verify_probe() -> str:
    """The probe set's hash; ProblemChanged unless it is the pinned one."""
    found = keys_hash(probe_keys())
    if found != pinned_probe_hash():
        raise ProblemChanged(f"the probe set hashes to {found[:16]}, pinned is {pinned_probe_hash()[:16]}", "restore problems/data")
    return found


def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))
    return facts
