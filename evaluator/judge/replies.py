"""What a runner may answer on its control socket: read as hostile data, bounded and typed.

A candidate shares its process with the runner program and can write to the socket itself. A reply that
the runner program never sends is `BadReply`: the process was tampered with.
Not for: believing what a reply says; it may refuse a candidate, nothing rests on its passing.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from evaluator.records import ProfileCase, ProfiledOperation

MOST = 4096
"""Entries read of any list."""
WORD = 300
"""Characters kept of any text."""


class BadReply(Exception):
    """A reply of another shape than the runner program's."""


def words(answer: dict[str, Any], name: str) -> list[str]:
    """A list of texts."""
    value = answer.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadReply(f"the reply's `{name}` is no list of texts")
    return [item[:WORD] for item in value[:MOST]]


def counts(answer: dict[str, Any], name: str) -> dict[str, int]:
    """How often, by name."""
    value = answer.get(name)
    if not isinstance(value, dict) or not all(_is_count(item) for item in value.values()):
        raise BadReply(f"the reply's `{name}` is no table of counts")
    return {str(key)[:WORD]: item for key, item in list(value.items())[:MOST]}


def addresses(answer: dict[str, Any], name: str, *, slots: int, inputs: int) -> list[list[int]]:
    """One address per input of every slot."""
    value = answer.get(name)
    if not isinstance(value, list) or len(value) != slots or not all(isinstance(row, list) and len(row) == inputs for row in value):
        raise BadReply(f"the reply's `{name}` has not {inputs} addresses for {slots} slots")
    if not all(_is_count(item) for row in value for item in row):
        raise BadReply(f"the reply's `{name}` holds no addresses")
    return [list(row) for row in value]


def pieces(answer: dict[str, Any], address: int, nbytes: int, descriptors: int) -> list[dict[str, int]]:
    """Where each piece of handed-over memory begins and its bytes: in order, without gaps, around the output."""
    value = answer.get("pieces")
    if not isinstance(value, list) or len(value) != descriptors or not 0 < len(value) <= MOST:
        raise BadReply(f"the reply names no {descriptors} pieces of memory")
    found = [{"base": _part(piece, "base"), "size": _part(piece, "size")} for piece in value]
    ends = [piece["base"] + piece["size"] for piece in found]
    joined = all(end == piece["base"] for end, piece in zip(ends, found[1:], strict=False))
    if not joined or found[0]["base"] > address or ends[-1] < address + nbytes:
        raise BadReply("the pieces of memory do not hold the output")
    return found


def profile(answer: dict[str, Any], case: str) -> ProfileCase:
    """What a profiled candidate spent its time on."""
    value = answer.get("operations")
    if not isinstance(value, list) or not all(isinstance(item, dict) and item.get("where") in ("host", "device") for item in value):
        raise BadReply("the reply names no operations")
    operations = [
        ProfiledOperation(
            name=str(item.get("name"))[:WORD], where=str(item["where"]), calls=_quantity(item.get("calls")), us=_quantity(item.get("us"))
        )
        for item in value[:MOST]
    ]
    idle = answer.get("gaps_us")
    gaps = [_quantity(item) for item in idle[:MOST]] if isinstance(idle, list) else []
    return ProfileCase(
        case=case,
        plain_us=_quantity(answer.get("plain_us")),
        operations=tuple(operations),
        gaps=len(gaps),
        gap_us=statistics.median(gaps) if gaps else None,
    )


def number(answer: dict[str, Any], name: str) -> int:
    """One number."""
    value = answer.get(name)
    if not _is_count(value):
        raise BadReply(f"the reply's `{name}` is no number")
    assert isinstance(value, int)
    return value


def _part(piece: Any, name: str) -> int:
    value = piece.get(name) if isinstance(piece, dict) else None
    if not _is_count(value):
        raise BadReply(f"a piece of memory has no `{name}`")
    assert isinstance(value, int)
    return value


def _quantity(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise BadReply("the reply holds no quantity where one belongs")
    return float(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
