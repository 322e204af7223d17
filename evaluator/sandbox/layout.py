"""Which parts of the host a sandbox sees: system directories, the interpreter's prefixes, and what is masked in them.

Invariant: nothing outside the system directories and the interpreter's and environment's own prefixes is visible, and our own
packages are not importable from any of them, wherever they are installed.
Not for: mounts of one job (runner files, buffers): those are `Bind`s given to the command.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import EnvironmentFault

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Bound read-only, or repeated as the symbolic link that they are on the host."""
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
PROCESSOR_FACTS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""Without them torch does not recognise the processor and falls back to slower code."""
HIDDEN = ("/home", "/tmp", "/root", "/var", "/run", "/work", "/mnt", "/opt", "/srv", "/media")
"""Empty, but for prefixes that lie below."""
OUR_PACKAGES = ("problems", "evaluator", "state", "agents", "daemon", "evidence", "console", "tests")
TOO_WIDE = {Path(p) for p in ("/", *SYSTEM[1:], *HIDDEN, "/etc", "/proc", "/sys", "/dev")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is shown and what is masked."""

    prefixes: tuple[Path, ...]
    """Directories bound read-only, outermost first."""
    masks: tuple[Path, ...]
    """Directories covered by an empty one after the prefixes are bound."""
    path: tuple[str, ...]
    """Entries of sys.path that an isolated interpreter would not add by itself."""
    python: Path
    """The interpreter to start."""


def current() -> Layout:
    """The layout of the interpreter that runs this."""
    prefixes = outermost([*_interpreter_prefixes(), *_site_directories()])
    for prefix in prefixes:
        if prefix in TOO_WIDE or prefix == Path.home():
            raise EnvironmentFault(
                f"the Python environment's prefix is {prefix}, which would show too much inside the sandbox",
                "install Ratchet into an environment of its own (`python -m venv`)",
            )
    sites = tuple(str(p) for p in _site_directories())
    return Layout(prefixes=prefixes, masks=masks(prefixes), path=sites, python=Path(sys.executable))


def outermost(directories: Iterable[Path]) -> tuple[Path, ...]:
    """Drop what /usr or another entry already contains; the order is by path."""
    kept: list[Path] = []
    for directory in sorted(set(directories)):
        if not any(directory.is_relative_to(parent) for parent in (*kept, Path("/usr"))):
            kept.append(directory)
    return tuple(kept)


def masks(prefixes: Iterable[Path]) -> tuple[Path, ...]:
    """Directories of ours that would be visible: each package where it lies beside our own records, and our checkout."""
    visible = (*prefixes, Path("/usr"))
    own_root = Path(__file__).resolve().parents[2]
    found: list[Path] = []
    for root in {own_root, *(Path(entry).resolve() for entry in sys.path if entry), *_site_directories()}:
        if not any(root.is_relative_to(place) for place in visible):
            continue
        if root == own_root and not _is_site(root):
            found.extend(entry for entry in root.iterdir() if entry.is_dir() and not _holds(entry, prefixes))
        elif (root / "evaluator" / "records" / "__init__.py").is_file():
            found.extend(root / name for name in OUR_PACKAGES if (root / name).is_dir())
    return tuple(sorted(set(found)))


def _holds(directory: Path, prefixes: Iterable[Path]) -> bool:
    return any(prefix.is_relative_to(directory) for prefix in (*prefixes, Path(sys.prefix), Path(sys.base_prefix)))


def _is_site(root: Path) -> bool:
    return root in _site_directories()


def _interpreter_prefixes() -> list[Path]:
    roots = [Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)]
    for hop in _links(Path(sys.executable)):
        if not any(hop.is_relative_to(root) for root in (*roots, Path("/usr"))):
            roots.append(hop.parent.parent)
    return [*roots, *(root.resolve() for root in roots)]


def _links(path: Path) -> list[Path]:
    hops = [path]
    while hops[-1].is_symlink() and len(hops) < 40:
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return hops


def _site_directories() -> list[Path]:
    paths = sysconfig.get_paths()
    candidates = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        candidates.append(site.getusersitepackages())
    return [Path(p) for p in dict.fromkeys(candidates) if Path(p).is_dir()]
