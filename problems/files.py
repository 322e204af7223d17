"""Reading a problem's files and fixing them by hash.

Invariant: what is hashed, parsed and later executed are the same bytes, read through `read_text`:
a regular file, UTF-8, not empty, at most 1 MiB.
Not for: candidates' files or journals.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from problems.errors import BadProblem, ProblemChanged, UnknownProblem
from problems.model import SourceFile

MAX_BYTES = 1 << 20


def read_text(path: Path) -> str:
    """The text of one problem file; UnknownProblem when it is missing, BadProblem when it is unfit."""
    raw = _read_bytes(path)
    if not raw.strip():
        raise BadProblem(f"{path} is empty", "give a KernelBench module or a GPU MODE task folder")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadProblem(f"{path} is not UTF-8 (byte {error.start})", "save the file as UTF-8") from error


def read_all(sources: Sequence[SourceFile]) -> dict[str, str]:
    """Texts of `sources` by name."""
    return {source.name: read_text(source.path) for source in sources}


def digest(texts: Mapping[str, str]) -> str:
    """sha256 over name, length and content of every file, in the order of their names."""
    total = hashlib.sha256()
    for name in sorted(texts):
        raw = texts[name].encode("utf-8")
        total.update(f"{name}\0{len(raw)}\0".encode())
        total.update(raw)
    return total.hexdigest()


def require_digest(key: str, found: str, expected: str) -> None:
    """Raise ProblemChanged unless the two hashes are equal."""
    if found != expected:
        raise ProblemChanged(
            f"{key} changed: its hash is {found[:16]}, fixed was {expected[:16]}",
            "restore the problem's files, or start a new run on the changed ones",
        )


def _read_bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadProblem(f"{path} is not a regular file", "give a KernelBench module or a GPU MODE task folder")
        if status.st_size > MAX_BYTES:
            raise BadProblem(f"{path} has {status.st_size} bytes, more than 1 MiB", "a problem file holds source text only")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UnknownProblem(f"{path} does not exist", "check the path") from error
    except OSError as error:
        raise BadProblem(f"{path} cannot be read: {error.strerror}", "check the file's permissions") from error
