"""Directory of what the judge built: complete entries only, each named by the hash of what it was made from.

Invariant: an entry appears by one rename, holds regular files only, and is never changed afterwards. Two judges at once are safe: the
second finds the first's entry. Nothing that a sandbox can write is below it, except a fresh directory before its files are taken over.
Not for: deciding what may be cached.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import EnvironmentFault

COPY_BYTES = 1 << 20


class NotRegular(Exception):
    """What a sandbox left is not a plain file of an acceptable size."""


def default_root() -> Path:
    """`$XDG_CACHE_HOME/ratchet`, else `~/.cache/ratchet`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "ratchet"


class Cache:
    """The cache below one root directory, made where it does not exist."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            for directory in (root, root / "fresh"):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFault(
                f"the cache directory {root} cannot be made: {error.strerror}", "set XDG_CACHE_HOME to a writable directory"
            ) from error

    def entry(self, kind: str, key: str) -> Path | None:
        """The complete entry, or None."""
        path = self.root / kind / key
        return path if path.is_dir() else None

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """A new empty directory on the cache's file system; what is still in it at the end is removed."""
        path = Path(tempfile.mkdtemp(dir=self.root / "fresh"))
        path.chmod(0o755)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def publish(self, fresh: Path, kind: str, key: str) -> Path:
        """Move a fresh directory into place; where another judge was first, its entry is returned."""
        target = self.root / kind / key
        target.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        return target

    def remove(self, kind: str, key: str) -> None:
        """Take an entry away: first out of sight, then from the disk."""
        with self.fresh() as place:
            try:
                (self.root / kind / key).rename(place / key)
            except FileNotFoundError:
                return

    @contextmanager
    def lock(self, name: str, *, shared: bool = False) -> Iterator[None]:
        """Hold the lock `name` among all judges of this cache; a killed judge's lock is free."""
        with self._lock_file(name) as file:
            fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield

    @contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        """Like `lock`, but says at once whether it was free."""
        with self._lock_file(name) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def _lock_file(self, name: str) -> Iterator[int]:
        (self.root / "locks").mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(self.root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def take_over(source: Path, target: Path, *, cap_bytes: int) -> int:
    """Copy one plain file that a sandbox wrote to the new file `target`; return its size. Raises NotRegular."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotRegular(f"{source.name} is missing or no plain file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(f"{source.name} is no plain file")
    with os.fdopen(descriptor, "rb") as file:
        size = 0
        with target.open("xb") as copy:
            while data := file.read(COPY_BYTES):
                size += len(data)
                if size > cap_bytes:
                    raise NotRegular(f"{source.name} is larger than {cap_bytes} bytes")
                copy.write(data)
        target.chmod(0o644)
    return size
