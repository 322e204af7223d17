"""`MANIFEST.sha256`: the pinned hash of every built-in problem file.

Invariant: a built-in file is used only if the manifest lists it with the hash of its bytes now.
`python -m problems.manifest --write` renews it after an intended change; without `--write` it verifies.
Not for: files of a user's own problem (their hash is fixed when a run starts).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from problems.errors import ProblemChanged, ProblemError

PACKAGE = Path(__file__).resolve().parent
FOLDERS = ("builtin", "compatibility", "data")
_MEND = "restore it (`git checkout problems`, or reinstall); only where you meant the change: `python -m problems.manifest --write`"


def manifest_path(package: Path = PACKAGE) -> Path:
    """Where the manifest of `package` lies."""
    return package / "MANIFEST.sha256"


def listed_files(package: Path = PACKAGE) -> list[Path]:
    """Every file that the manifest must list, sorted."""
    found = (path for folder in FOLDERS for path in (package / folder).rglob("*") if path.is_file())
    return sorted(path for path in found if "__pycache__" not in path.parts and path.suffix != ".pyc")


def render(package: Path = PACKAGE) -> str:
    """The manifest's text for the files as they are now (the format of sha256sum)."""
    return "".join(f"{_sha256(path)}  {path.relative_to(package).as_posix()}\n" for path in listed_files(package))


def read(package: Path = PACKAGE) -> dict[str, str]:
    """Pinned hashes by path relative to the package."""
    try:
        lines = manifest_path(package).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemChanged(f"{manifest_path(package)} cannot be read", _MEND) from error
    pairs = (line.split("  ", 1) for line in lines if line.strip())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def check(paths: Iterable[Path], package: Path = PACKAGE) -> None:
    """Raise ProblemChanged unless each of `paths` is listed and unchanged."""
    pinned = read(package)
    for path in paths:
        name = path.relative_to(package).as_posix()
        if name not in pinned:
            raise ProblemChanged(f"problems/{name} is not in MANIFEST.sha256", _MEND)
        if not path.is_file():
            raise ProblemChanged(f"problems/{name} is missing", _MEND)
        if _sha256(path) != pinned[name]:
            raise ProblemChanged(f"problems/{name} differs from MANIFEST.sha256", _MEND)


def verify(package: Path = PACKAGE) -> None:
    """Check the whole manifest both ways: nothing changed, nothing missing, nothing unlisted."""
    check({*listed_files(package), *(package / name for name in read(package))}, package)


def main(arguments: list[str]) -> int:
    """Write or verify the manifest; the exit code."""
    if arguments == ["--write"]:
        manifest_path().write_text(render(), encoding="utf-8")
        return 0
    if arguments:
        print("usage: python -m problems.manifest [--write]", file=sys.stderr)
        return 2
    try:
        verify()
    except ProblemError as error:
        print(f"{error.message}\n{error.hint}", file=sys.stderr)
        return error.code
    return 0


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
