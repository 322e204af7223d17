"""Starting a daemon in the background, and stopping it again: for the command line.

Invariant: `launch` returns only when the daemon answers, or raises with the daemon's own reason; the
daemon leads a session of its own, so closing the terminal does not end it.
Not for: services; systemd starts its own.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.environment import without_service
from daemon.errors import AlreadyRunning, BadRequest, DaemonError, EnvironmentFault, StateUnusable
from daemon.places import Places

PACKAGES = Path(__file__).resolve().parent.parent

_children: list[subprocess.Popen[bytes]] = []
"""Daemons started here: kept, so that `stop` can wait for them."""

_KINDS: dict[int, type[DaemonError]] = {2: BadRequest, 3: EnvironmentFault}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A daemon that runs in the background."""

    pid: int
    socket: Path
    log: Path


def launch(
    state_dir: Path,
    *,
    socket: Path | None = None,
    judge_command: str | None = None,
    spools: Sequence[str] = (),
    once: bool = False,
    timeout_s: float = 60.0,
) -> Launched:
    """Start a daemon on `state_dir` and wait until it is ready; DaemonError has its reason where it is not.

    `spools` are words DEVICE=DIRECTORY.
    """
    state_dir = state_dir.absolute()
    command = [sys.executable, "-m", "daemon", "--state-dir", str(state_dir)]
    command += ["--socket", str(socket.absolute())] if socket else []
    command += ["--judge-command", judge_command] if judge_command else []
    command += spool_options(spools)
    command += ["--once"] if once else []
    return spawn(command, log=Places(state_dir).log, timeout_s=timeout_s)


def spool_options(words: Sequence[str]) -> list[str]:
    """How a daemon is told of its spools."""
    return [part for word in words for part in ("--spool", word)]


def spawn(command: Sequence[str], *, log: Path, timeout_s: float) -> Launched:
    """Start `command`, a daemon, and wait for the line in which it says whether it is ready."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("ab") as sink:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=sink,
                cwd=PACKAGES,
                env=without_service(os.environ),
                start_new_session=True,
            )
    except OSError as error:
        raise StateUnusable(_why_unusable(log, error), "choose another --state-dir") from error
    said = _first_line(process, timeout_s=timeout_s)
    if said.get("ready") is True:
        _children.append(process)
        return Launched(pid=process.pid, socket=Path(str(said["socket"])), log=log)
    process.kill()
    process.wait()
    raise _failure(said, log)


def _why_unusable(log: Path, error: OSError) -> str:
    for place in (log.parent, *log.parent.parents):
        if place.exists():
            if not place.is_dir():
                return f"{place} is a file, not a directory"
            if not os.access(place, os.W_OK | os.X_OK):
                return f"{place} cannot be written"
            break
    return f"the daemon's log cannot be written: {log} ({error.strerror})"


def stop(pid: int, *, timeout_s: float = 40.0) -> bool:
    """Ask the daemon with this pid to end, then wait; return whether it ended by itself."""
    ended = _end(pid, timeout_s=timeout_s)
    for child in [child for child in _children if child.pid == pid]:
        child.wait()
        _children.remove(child)
    return ended


def _end(pid: int, *, timeout_s: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with selectors.DefaultSelector() as waiting:
        waiting.register(handle, selectors.EVENT_READ)
        try:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if waiting.select(timeout_s):
                return True
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            waiting.select(5.0)
            return False
        except ProcessLookupError:
            return True
        finally:
            os.close(handle)


def _first_line(process: subprocess.Popen[bytes], *, timeout_s: float) -> dict[str, Any]:
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    received = b""
    with selectors.DefaultSelector() as waiting, process.stdout as pipe:
        waiting.register(pipe, selectors.EVENT_READ)
        while b"\n" not in received:
            if not waiting.select(max(0.0, deadline - time.monotonic())):
                return {"error": {"message": f"the daemon was not ready within {timeout_s:.0f} s", "code": 3, "hint": ""}}
            chunk = os.read(pipe.fileno(), 65536)
            if not chunk:
                break
            received += chunk
    try:
        said = json.loads(received.split(b"\n")[0])
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _failure(said: dict[str, Any], log: Path) -> DaemonError:
    error = said.get("error")
    if not isinstance(error, dict):
        return EnvironmentFault("the daemon ended before it was ready", f"see {log}")
    message, hint = str(error.get("message", "")), str(error.get("hint", "")) or f"see {log}"
    kind = AlreadyRunning if message.startswith("another daemon") else _KINDS.get(int(error.get("code", 3)), EnvironmentFault)
    return kind(message, hint)
