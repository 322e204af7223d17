"""Where the daemon keeps its own files, and where its socket is by default.

In the state directory: `daemon.lock` (who runs, held with flock), `format` (version of the layout),
`jobs/` (files of running jobs), `daemon.log` (of a daemon started in the background). The files of a
run are `state.files`' concern.
Invariant: nothing is created in a directory that is read-only or of a newer version.
Not for: opening or repairing anything.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from daemon.errors import SocketUnusable, StateUnusable

FORMAT = 1
SOCKET_NAME = "ratchet.sock"
SOCKET_PATH_LIMIT = 107
"""Bytes of a Unix socket's path that Linux takes (108 with the closing NUL)."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths inside one state directory."""

    state_dir: Path

    @property
    def lock(self) -> Path:
        """Held by the daemon for as long as it lives."""
        return self.state_dir / "daemon.lock"

    @property
    def format(self) -> Path:
        """Holds the version of the directory's layout."""
        return self.state_dir / "format"

    @property
    def jobs(self) -> Path:
        """One directory for each job that runs."""
        return self.state_dir / "jobs"

    @property
    def log(self) -> Path:
        """Log of a daemon started in the background."""
        return self.state_dir / "daemon.log"


def runtime_dir() -> Path:
    """`$XDG_RUNTIME_DIR/ratchet`, or a directory of this user's under the temporary directory."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "ratchet"
    return Path(tempfile.gettempdir()) / f"ratchet-{os.getuid()}"


def default_socket(state_dir: Path) -> Path:
    """The socket of a daemon on `state_dir` that was not told where to listen."""
    if os.environ.get("XDG_RUNTIME_DIR") and runtime_dir().parent.is_dir():
        candidate = runtime_dir() / SOCKET_NAME
    else:
        candidate = state_dir.absolute() / SOCKET_NAME
    if len(os.fsencode(candidate)) <= SOCKET_PATH_LIMIT:
        return candidate
    return Path(tempfile.gettempdir()) / f"ratchet-{os.getuid()}" / SOCKET_NAME


def find_socket(state_dir: Path) -> Path:
    """Where the daemon of `state_dir` says it listens; the default where none has said so."""
    try:
        said = json.loads(Places(state_dir).lock.read_text(encoding="utf-8")).get("socket")
    except (OSError, ValueError, AttributeError):
        said = None
    return Path(said) if isinstance(said, str) and said else default_socket(state_dir)


def check_socket_path(path: Path) -> None:
    """Raise `SocketUnusable` where the path is longer than the kernel takes."""
    size = len(os.fsencode(path.absolute()))
    if size > SOCKET_PATH_LIMIT:
        raise SocketUnusable(
            f"the socket's path is {size} bytes, {SOCKET_PATH_LIMIT} is the most: {path}",
            "give a shorter one with --socket, for example under /tmp",
        )


def prepare_state_dir(state_dir: Path) -> Places:
    """Create the directory where needed (0700) and check that this version may write into it."""
    places = Places(state_dir)
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_format(places)
        places.jobs.mkdir(mode=0o700, exist_ok=True)
        _check_writable(state_dir)
    except OSError as error:
        raise StateUnusable(
            f"the state directory cannot be written: {state_dir} ({error.strerror})",
            "make it writable, free some room, or choose another with --state-dir",
        ) from error
    return places


def _check_format(places: Places) -> None:
    try:
        text = places.format.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        places.format.write_text(f"{FORMAT}\n", encoding="utf-8")
        return
    if not text.isdigit():
        raise StateUnusable(f"{places.format} does not hold a version number", "restore it from a backup, or choose another --state-dir")
    if int(text) > FORMAT:
        raise StateUnusable(
            f"the state directory is of a newer version ({text}; this one writes {FORMAT}): {places.state_dir}",
            "use the newer ratchet, or choose another --state-dir",
        )


def _check_writable(state_dir: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=state_dir, prefix=".write-test-"):
        return
