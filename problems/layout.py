"""Taking nested data apart into a flat tuple, and putting it together again.

A layout is JSON: `{"leaf": 0}`, `{"tuple": [...]}`, `{"list": [...]}` or `{"dict": [[key, node], ...]}`.
Invariant: `join(layout, leaves)` is the data that `split` took apart; the same layout serves every call of a case.
Not for: values other than tensors, numbers, strings, booleans and None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from problems.errors import BadProblem

_PLAIN = (int, float, complex, str, bool, type(None))


def split(data: Any, *, where: str) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """`(layout, leaves)` of nested tuples, lists and dicts; BadProblem for anything else in it."""
    leaves: list[Any] = []
    return _split(data, leaves, where), tuple(leaves)


def join(layout: dict[str, Any], leaves: Sequence[Any]) -> Any:
    """The nested data of `layout` with `leaves` in its places."""
    if "leaf" in layout:
        return leaves[layout["leaf"]]
    if "dict" in layout:
        return {key: join(node, leaves) for key, node in layout["dict"]}
    if "tuple" in layout:
        return tuple(join(node, leaves) for node in layout["tuple"])
    return [join(node, leaves) for node in layout["list"]]


def _split(data: Any, leaves: list[Any], where: str) -> dict[str, Any]:
    if isinstance(data, tuple):
        return {"tuple": [_split(item, leaves, where) for item in data]}
    if isinstance(data, list):
        return {"list": [_split(item, leaves, where) for item in data]}
    if isinstance(data, dict):
        return {"dict": [[key, _split(item, leaves, where)] for key, item in data.items()]}
    if not isinstance(data, _PLAIN) and not _is_tensor(data):
        raise BadProblem(
            f"{where}: a value of type {type(data).__name__}",
            "inputs and outputs are tensors, numbers and strings in tuples, lists and dicts",
        )
    leaves.append(data)
    return {"leaf": len(leaves) - 1}


def _is_tensor(data: Any) -> bool:
    import torch

    return isinstance(data, torch.Tensor)
