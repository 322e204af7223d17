"""The KernelBench suite: keys such as `kernel:L2_014`, once the user has imported a copy.

Invariant: a file of the suite is used only if its hash is the one pinned for revision 423217d9.
The copy's directory comes from the caller's setting or from `RATCHET_KERNELBENCH`; nothing is downloaded.
Not for: which keys are probed or learnt from (`problems.splits`).
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path

from problems import files
from problems.errors import ProblemChanged, UnknownProblem

ENVIRONMENT = "RATCHET_KERNELBENCH"
REVISION = "423217d9"
_PINNED = Path(__file__).resolve().parent / "data" / f"kernelbench-{REVISION}.sha256"
_FILE = re.compile(r"KernelBench/level(\d+)/(\d+)_.*\.py")


@cache
def pinned() -> dict[str, tuple[str, str]]:
    """Suite path and sha256 by id (`L2_014`), for every file of the pinned revision."""
    found: dict[str, tuple[str, str]] = {}
    for line in _PINNED.read_text(encoding="utf-8").splitlines():
        sha256, path = line.split("  ", 1)
        match = _FILE.fullmatch(path)
        if match:
            found[f"L{match[1]}_{int(match[2]):03d}"] = (path, sha256)
    return dict(sorted(found.items()))


def suite_root(setting: Path | None = None) -> Path | None:
    """Where the imported copy lies, or None: a checkout, or its folder with `level1` in it."""
    chosen = setting or (Path(os.environ[ENVIRONMENT]) if os.environ.get(ENVIRONMENT) else None)
    if chosen is None:
        return None
    chosen = chosen.expanduser().resolve()
    return chosen.parent if (chosen / "level1").is_dir() and chosen.name == "KernelBench" else chosen


def suite_keys(setting: Path | None = None) -> list[str]:
    """Every key of the imported suite; empty when none is imported."""
    return [f"kernel:{name}" for name in pinned()] if suite_root(setting) else []


def suite_file(name: str, setting: Path | None = None) -> Path:
    """The verified file of one id; UnknownProblem or ProblemChanged with the mend."""
    root = suite_root(setting)
    if root is None:
        raise UnknownProblem(
            f"kernel:{name} needs the KernelBench suite, which is not imported",
            f"set {ENVIRONMENT} to a checkout of KernelBench at {REVISION}",
        )
    relative, sha256 = pinned()[name]
    path = root / relative
    if not path.is_file() and (root / relative.removeprefix("KernelBench/")).is_file():
        path = root / relative.removeprefix("KernelBench/")
    found = hashlib.sha256(files.read_text(path).encode("utf-8")).hexdigest()
    if found != sha256:
        raise ProblemChanged(f"{path} is not the file of KernelBench {REVISION}", f"check out {REVISION} in {root}")
    return path
