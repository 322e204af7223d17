"""The canonical line of a record and the hash chain over lines.

A line is `{"v":..,"seq":..,"ts":..,"run":..,"kind":..,"actor":..,"data":..,"prev":..,"hash":..}` in
this order, without spaces, UTF-8, ended by LF. `hash` is the sha256 of the same bytes without its own
member, and `prev` is the hash of the line before; so a check needs only the bytes, whatever fields a
newer writer put in, and any changed byte is found at its own line.
Invariant: `seal` and `check` agree on every line. The chain shows accidents and partial edits; it is
not a signature: who can rewrite the whole file can rewrite the chain.
Not for: files (`state.lines`, `state.journal`).
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

from state.errors import BadRecord, Damaged
from state.events import FORMAT_VERSION, KINDS, Event, Record

GENESIS = "0" * 64
"""`prev` of the first record."""

MAX_RECORD_BYTES = 32 * 1024 * 1024
"""Longest line that is written or read."""

_HASH_MEMBER = b',"hash":"'
_SUFFIX_LEN = len(_HASH_MEMBER) + 64 + len(b'"}')

_encoder = msgspec.json.Encoder()


class Head(msgspec.Struct, frozen=True):
    """What the chain needs of a line; `data` is skipped, not built."""

    v: int
    seq: int
    run: str
    prev: str
    hash: str


_head_decoder = msgspec.json.Decoder(Head)
_record_decoder = msgspec.json.Decoder(Record)


def data_of(kind: str, data: Event | dict[str, Any]) -> dict[str, Any]:
    """`data` as JSON-ready builtins, checked against the struct of `kind`; BadRecord says what is wrong."""
    known = KINDS.get(kind)
    if isinstance(data, Event) and known is not type(data):
        raise BadRecord(f"{type(data).__name__} is not the data of kind {kind!r}")
    try:
        plain: dict[str, Any] = msgspec.to_builtins(data, str_keys=True)
        if known is not None:
            msgspec.convert(plain, known)
    except (msgspec.ValidationError, TypeError) as error:
        raise BadRecord(f"the data of a {kind!r} record is not valid: {error}") from error
    _refuse_non_finite(plain, kind)
    return plain


def seal(*, seq: int, ts: str, run: str, kind: str, actor: str, data: dict[str, Any], prev: str) -> tuple[bytes, str]:
    """The line of one record, LF included, and its hash."""
    fields = {"v": FORMAT_VERSION, "seq": seq, "ts": ts, "run": run, "kind": kind, "actor": actor, "data": data, "prev": prev}
    try:
        body = _encoder.encode(fields)
    except UnicodeEncodeError as error:
        raise BadRecord(f"a {kind!r} record holds text that is not valid Unicode: {error.reason}") from error
    if len(body) + _SUFFIX_LEN > MAX_RECORD_BYTES:
        raise BadRecord(f"a {kind!r} record of {len(body)} bytes is over the limit of {MAX_RECORD_BYTES}")
    digest = hashlib.sha256(body).hexdigest()
    return b'%s,"hash":"%s"}\n' % (body[:-1], digest.encode()), digest


def check(line: bytes, *, number: int, prev: str, run: str | None) -> Head:
    """The head of one line (LF not included); Damaged names `number` and why."""
    try:
        head = _head_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(number, f"not a record: {error}") from error
    _check_hash(line, head, number)
    if head.seq != number:
        raise Damaged(number, f"seq {head.seq} where {number} was due: a record is missing or doubled")
    if head.prev != prev:
        raise Damaged(number, "broken chain: `prev` is not the hash of the line before")
    if run is not None and head.run != run:
        raise Damaged(number, f"a record of run {head.run!r} in the journal of {run!r}")
    return head


def decode(line: bytes, *, number: int) -> Record:
    """One line as a record; a line already checked only fails here when its fields have wrong types."""
    try:
        return _record_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(number, f"not a record: {error}") from error


def _check_hash(line: bytes, head: Head, number: int) -> None:
    suffix = b'%s%s"}' % (_HASH_MEMBER, head.hash.encode())
    if not line.endswith(suffix):
        raise Damaged(number, "`hash` is not the last member of the line")
    digest = hashlib.sha256(line[: -len(suffix)])
    digest.update(b"}")
    if digest.hexdigest() != head.hash:
        raise Damaged(number, "hash mismatch: the line was changed after it was written")


def _refuse_non_finite(value: Any, kind: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRecord(f"a {kind!r} record holds a non-finite number")
    elif isinstance(value, dict):
        for item in value.values():
            _refuse_non_finite(item, kind)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_non_finite(item, kind)
