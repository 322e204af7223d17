"""Records to JSON and back.

Invariant: `encode` and `decode` are each other's inverse, a reader ignores fields it does not know,
and a non-finite float never reaches JSON (it is a ValueError).
Not for: what the fields mean (`jobs`, `results`).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import types
import typing
from typing import Any

T = typing.TypeVar("T")


def encode(record: Any) -> Any:
    """Return `record` as JSON-ready builtins; a non-finite float is a ValueError."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: encode(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, enum.Enum):
        return record.value
    if isinstance(record, dict):
        return {str(k): encode(v) for k, v in record.items()}
    if isinstance(record, (list, tuple)):
        return [encode(v) for v in record]
    if isinstance(record, float) and not math.isfinite(record):
        raise ValueError("a non-finite number in a record")
    return record


def decode(cls: type[T], data: Any) -> T:
    """Build a `cls` from what `encode` returned; unknown fields are ignored, a wrong shape is a ValueError."""
    return typing.cast("T", _decode(cls, data, cls.__name__))


def dumps(record: Any) -> str:
    """One line of JSON."""
    return json.dumps(encode(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _decode(hint: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(hint, data, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_dataclass(hint, data, where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(data)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where}: expected a list")
        item = typing.get_args(hint)[0]
        return tuple(_decode(item, v, f"{where}[{i}]") for i, v in enumerate(data))
    if hint is float:
        if isinstance(data, bool) or not isinstance(data, (int, float)):
            raise ValueError(f"{where}: expected a number")
        return float(data)
    if isinstance(hint, type) and origin is None and (not isinstance(data, hint) or (hint is int and isinstance(data, bool))):
        raise ValueError(f"{where}: expected {hint.__name__}, got {type(data).__name__}")
    return data


def _decode_union(hint: Any, data: Any, where: str) -> Any:
    if data is None:
        return None
    options = [a for a in typing.get_args(hint) if a is not types.NoneType]
    return _decode(options[0], data, where)


def _decode_dataclass(cls: type[Any], data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object")
    hints = typing.get_type_hints(cls)
    known = {f.name: _decode(hints[f.name], data[f.name], f"{where}.{f.name}") for f in dataclasses.fields(cls) if f.name in data}
    try:
        return cls(**known)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
