"""The Unix socket: bound by us, private, and never stolen from a daemon that still listens.

uvicorn would make the node 0666 and take a path over from a running server, so the socket is bound
here, under a lock beside it and under a umask, and handed to it.
Invariant: node 0600, a directory that we create 0700; only a socket is ever unlinked, and only under
the lock; the peer's uid is the kernel's word (SO_PEERCRED), never the client's.
Not for: HTTP.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daemon.errors import AlreadyRunning, SocketUnusable
from daemon.locks import InstanceLock
from daemon.places import check_socket_path

_UCRED = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as the kernel recorded it at connect."""

    pid: int
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer:
    """Credentials of a connected Unix socket's other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, gid = _UCRED.unpack(raw)
    return Peer(pid=pid, uid=uid, gid=gid)


def allowed(peer: Peer) -> bool:
    """Whether the peer may speak to this daemon: its own user, or root."""
    return peer.uid in (0, os.getuid())


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Bind and listen on `path` for as long as the context lasts."""
    check_socket_path(path)
    _private_directory(path.parent)
    with InstanceLock(path.with_name(path.name + ".lock"), what=f"the socket {path}") as lock:
        lock.note({"pid": os.getpid(), "socket": str(path)})
        _remove_stale(path)
        bound = _bind(path)
        try:
            yield bound
        finally:
            bound.close()
            _unlink_socket(path)


def _private_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = directory.stat().st_uid
    except OSError as error:
        raise SocketUnusable(
            f"the socket's directory cannot be made: {directory} ({error.strerror})", "choose another with --socket"
        ) from error
    if owner not in (0, os.getuid()):
        raise SocketUnusable(f"the socket's directory belongs to another user: {directory}", "choose another with --socket")


def _remove_stale(path: Path) -> None:
    """Remove what a daemon that died left behind; anything else on the path is an error."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketUnusable(f"there is a file that is not a socket at {path}", "remove it, or choose another path with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            _unlink_socket(path)
            return
        except OSError as error:
            raise SocketUnusable(f"the socket {path} is in use ({error})", "choose another path with --socket") from error
    raise AlreadyRunning(f"another program listens on {path}", "stop it, or choose another path with --socket")


def _bind(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        bound.bind(str(path))
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise SocketUnusable(f"the socket cannot be bound: {path} ({error.strerror})", "choose another path with --socket") from error
    finally:
        os.umask(before)
    bound.setblocking(False)
    return bound


def _unlink_socket(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
