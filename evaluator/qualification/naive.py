"""How the naive evaluator is called, and how its answer is read.

Invariant: its answer is read the way a careless harness reads it (the last JSON line on stdout, exit
code ignored), because that carelessness is part of what the controls exploit.
Not for: running it (the caller owns the sandbox) or believing it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.records import Claim

SCRIPT = Path(__file__).parent / "naive_main.py"
MAX_OUTPUT = 1 << 20
TIMEOUT_S = 120.0


def arguments(
    reference: str,
    candidate: str,
    *,
    entry: str = "ModelNew",
    constants: Mapping[str, Any] | None = None,
    extensions: str = "",
    trials: int = 30,
    threads: int = 1,
    atol: float = 1e-4,
    rtol: float = 1e-4,
) -> list[str]:
    """Arguments of `naive_main.py`, paths as the sandbox sees them.

    `constants` are the case's module constants, `extensions` the directory of built extensions (empty: torch builds them itself).
    """
    options = ["--entry", entry, "--constants", json.dumps(dict(constants or {})), "--trials", str(trials), "--threads", str(threads)]
    options += ["--atol", repr(atol), "--rtol", repr(rtol)]
    return [reference, candidate, *options, *(["--extensions", extensions] if extensions else [])]


def read_claim(stdout: str, *, ended: str = "") -> Claim:
    """What the naive evaluator believed; `ended` says in words how it ended where it gave no answer."""
    for line in reversed(stdout[-MAX_OUTPUT:].splitlines()):
        answer = _answer(line)
        if answer is not None:
            return Claim(correct=answer.get("correct") is True, speedup=_number(answer.get("speedup")), detail=_words(answer))
    return Claim(correct=False, speedup=None, detail=f"no answer{f' ({ended})' if ended else ''}")


def _answer(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and "correct" in answer else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _words(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    return "".join(c if c.isprintable() else " " for c in str(error))[:300] if error else ""
