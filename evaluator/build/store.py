"""What a build is, and how clean ones and their libraries are written to the cache and found again.

Invariant: a build found in the cache is checked against the hashes in its own record; one that does not match is thrown away.
Not for: builds that failed: they are never kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.build.cache import Cache
from evaluator.records import Status

RECORD = "build.json"
KIND, LIBRARIES = "builds", "libraries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """One library that a source asked for."""

    name: str
    key: str
    """Hash of the request; the library is `<key>.so` in the build's directory."""
    sha256: str
    """Of the library."""
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    header: str
    """`precompiled`, `short` or `full`: which form of torch/extension.h it was compiled with."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Outcome of building one source."""

    status: Status
    """OK, COMPILE_ERROR, RUNTIME_ERROR or TIMEOUT."""
    message: str
    """What went wrong, in one line; empty when OK."""
    log: str
    """Compiler output or traceback, bounded and cleaned. With OK: of extensions that failed and were not needed."""
    directory: Path | None
    """What to mount read-only into a runner; None unless OK."""
    extensions: tuple[Extension, ...]
    generated: dict[str, str]
    """Every source and header text that was compiled, by extension and file name: to be scanned again."""
    imports: tuple[str, ...]
    """Top-level modules that importing the source loaded beyond torch itself."""
    seconds: float = 0.0
    cached: bool = False

    def but(self, **changes: Any) -> Build:
        """The same with other fields."""
        return dataclasses.replace(self, **changes)


def keep(cache: Cache, key: str, fresh: Path, build: Build) -> Build:
    """Write the record of a clean build beside its libraries and publish the directory."""
    record = {
        "extensions": [dataclasses.asdict(e) for e in build.extensions],
        "generated": build.generated,
        "imports": build.imports,
        "log": build.log,
        "seconds": build.seconds,
    }
    (fresh / RECORD).write_text(json.dumps(record), encoding="utf-8")
    return build.but(directory=cache.publish(fresh, KIND, key))


def find(cache: Cache, key: str) -> Build | None:
    """The build kept under `key`, or None; a damaged one is removed."""
    directory = cache.entry(KIND, key)
    if directory is None:
        return None
    try:
        return _read(directory)
    except (OSError, ValueError, KeyError, TypeError):
        cache.remove(KIND, key)
        return None


def _read(directory: Path) -> Build:
    record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    extensions = tuple(Extension(**{**e, "cflags": tuple(e["cflags"]), "ldflags": tuple(e["ldflags"])}) for e in record["extensions"])
    for item in extensions:
        if file_hash(directory / f"{item.key}.so") != item.sha256:
            raise ValueError(f"{item.key}.so is not what was built")
    return Build(
        status=Status.OK,
        message="",
        log=str(record["log"]),
        directory=directory,
        extensions=extensions,
        generated=dict(record["generated"]),
        imports=tuple(record["imports"]),
        seconds=float(record["seconds"]),
        cached=True,
    )


def keep_library(cache: Cache, key: str, library: Path, header: str) -> None:
    """Keep one freshly compiled library under the hash of its request and toolchain: other sources may ask for the same."""
    with cache.fresh() as fresh:
        shutil.copyfile(library, fresh / "library.so")
        (fresh / RECORD).write_text(json.dumps({"sha256": file_hash(library), "header": header}), encoding="utf-8")
        cache.publish(fresh, LIBRARIES, key)


def find_library(cache: Cache, key: str, library: Path) -> str | None:
    """Copy the library kept under `key` to the new file `library` and return its header's form; None where there is none."""
    directory = cache.entry(LIBRARIES, key)
    if directory is None:
        return None
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        shutil.copyfile(directory / "library.so", library)
        if file_hash(library) != record["sha256"]:
            raise ValueError("not what was compiled")
    except (OSError, ValueError, KeyError, TypeError):
        library.unlink(missing_ok=True)
        cache.remove(LIBRARIES, key)
        return None
    library.chmod(0o644)
    return str(record["header"])


def file_hash(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
