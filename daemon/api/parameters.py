"""Reading requests strictly: nothing unknown, nothing missing, nothing of a wrong type.

Invariant: a request that is refused here has changed nothing.
Not for: what the values mean.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from daemon.errors import BadRequest
from daemon.listener import Peer
from daemon.orders import Order

BODY_LIMIT = 1 << 20
"""Most bytes of a request's body."""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters in a URL."""


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the bodies of mutations; every one has an idempotency key."""

    key: str


Q = TypeVar("Q", bound=Query)
B = TypeVar("B", bound=Body)


def query(request: Request, shape: type[Q]) -> Q:
    """The URL's parameters as `shape`; BadRequest names what does not fit."""
    pairs = request.query_params.multi_items()
    names = [name for name, _ in pairs]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise BadRequest(f"parameter given more than once: {', '.join(sorted(repeated))[:100]}")
    try:
        return msgspec.convert(dict(pairs), shape, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the parameters do not fit: {error}", f"parameters here: {_fields(shape)}") from error


async def body(request: Request, shape: type[B]) -> B:
    """The JSON body as `shape`; BadRequest names what does not fit."""
    no_parameters(request)
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > BODY_LIMIT:
            raise BadRequest(f"the body is over {BODY_LIMIT} bytes")
    try:
        return msgspec.json.decode(bytes(raw), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body does not fit: {error}", f"a JSON object with: {_fields(shape)}") from error


def no_parameters(request: Request) -> None:
    """Refuse any parameter in the URL."""
    if request.query_params:
        raise BadRequest(f"unknown parameter {next(iter(request.query_params))[:100]!r}", "there are none here")


def order(request: Request, key: str) -> Order:
    """The order of this request's peer."""
    peer = peer_of_request(request)
    return Order(key=key, uid=peer.uid if peer else None, pid=peer.pid if peer else None)


def peer_of_request(request: Request) -> Peer | None:
    """Who asks, as `daemon.server` has put it into the scope; None where the transport is not our socket."""
    client: Any = request.scope.get("client")
    if not client or not str(client[0]).startswith("uid="):
        return None
    uid, gid = (int(part.partition("=")[2]) for part in str(client[0]).split(","))
    return Peer(pid=int(client[1]), uid=uid, gid=gid)


def _fields(shape: type[msgspec.Struct]) -> str:
    return ", ".join(shape.__struct_fields__) or "none"
