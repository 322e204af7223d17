"""What this machine has and lacks: one finding a line, each with its mend.

Invariant: nothing is installed, created or changed, torch is never imported, and a missing optional
part is no fault.
Not for: the evaluator's own refusals (it checks again before every measurement).
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from console.errors import EnvironmentFault
from console.text import one_line

PACKAGES = ("problems", "evaluator", "state", "agents", "daemon", "evidence", "console")
DISTRIBUTION = "kernel-ratchet"
TORCH_RANGE = ((2, 11), (2, 14))
SOCKET_PATH_LIMIT = 107
_TIMEOUT_S = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `ratchet doctor`."""

    name: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = True
    """False for optional parts."""


def examine(state_dir: Path, socket: Path) -> list[Finding]:
    """Look at everything."""
    checks: Sequence[Callable[[], Finding]] = (
        python,
        torch,
        compiler,
        headers,
        bubblewrap,
        namespaces,
        seccomp,
        cores,
        builtin_problems,
        lambda: writable("state directory", state_dir, "choose another with --state-dir, or make it writable"),
        lambda: socket_place(socket),
        names,
        lambda: optional("kernelguard", "advisory scan of candidates: .venv/bin/pip install kernelguard"),
        lambda: optional("triton", "Triton candidates: pip install triton"),
    )
    return [check() for check in checks]


def require_judge() -> None:
    """Raise EnvironmentFault (exit 3) with the mend of the first thing that the judge needs and this machine lacks."""
    for check in (torch, compiler, headers, bubblewrap, namespaces, seccomp, cores):
        finding = check()
        if not finding.ok:
            raise EnvironmentFault(f"{finding.name}: {finding.detail}", finding.mend)


def python() -> Finding:
    """Check the interpreter's version."""
    return Finding(name="python", ok=sys.version_info >= (3, 11), detail=platform.python_version(), mend="use Python 3.11 or newer")


def torch() -> Finding:
    """Check the installed version of torch without importing it."""
    found = _version("torch")
    if found is None:
        return Finding(name="torch", ok=False, detail="not installed", mend="make setup, or pip install torch==2.13.0")
    low, high = TORCH_RANGE
    numbers = tuple(int(part) for part in found.split("+")[0].split(".")[:2] if part.isdigit())
    return Finding(name="torch", ok=low <= numbers < high, detail=found, mend="pip install torch==2.13.0 (2.11 to 2.13 are supported)")


def compiler() -> Finding:
    """Check for a C++ compiler."""
    wanted = os.environ.get("CXX") or next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), "c++")
    path = shutil.which(wanted)
    if path is None:
        return Finding(name="compiler", ok=False, detail=f"no {wanted}", mend="apt-get install g++ (or set CXX)")
    ok, said = _try([path, "--version"])
    return Finding(name="compiler", ok=ok, detail=said or path, mend="apt-get install g++ (or set CXX)")


def headers() -> Finding:
    """Check for Python's C headers, which every C++ candidate includes."""
    path = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return Finding(name="python headers", ok=path.is_file(), detail=str(path.parent), mend="apt-get install python3-dev")


def bubblewrap() -> Finding:
    """Check for bwrap."""
    path = shutil.which("bwrap")
    if path is None:
        return Finding(name="bubblewrap", ok=False, detail="no bwrap", mend="apt-get install bubblewrap")
    ok, said = _try([path, "--version"])
    return Finding(name="bubblewrap", ok=ok, detail=said, mend="apt-get install bubblewrap")


def namespaces() -> Finding:
    """Check that bwrap may make the namespaces a sandbox needs."""
    path = shutil.which("bwrap")
    if path is None:
        return Finding(name="user namespaces", ok=False, detail="cannot be tried without bubblewrap", mend="apt-get install bubblewrap")
    ok, said = _try([path, "--unshare-all", "--ro-bind", "/", "/", "--", "true"])
    mend = "sysctl kernel.unprivileged_userns_clone=1 (Ubuntu 24.04: kernel.apparmor_restrict_unprivileged_userns=0)"
    return Finding(name="user namespaces", ok=ok, detail="usable" if ok else said or "refused", mend=mend)


def seccomp() -> Finding:
    """Check that the kernel filters system calls and that a filter is committed for this machine."""
    machine = platform.machine()
    root = _package_root("evaluator")
    filters = sorted(root.glob(f"sandbox/**/*{machine}*.bpf")) + sorted(root.glob(f"sandbox/**/{machine}/*.bpf")) if root else []
    kernel = "Seccomp:" in _read(Path("/proc/self/status"))
    detail = f"kernel {'yes' if kernel else 'no'}, filters for {machine}: {len(filters)}"
    mend = "run a kernel with CONFIG_SECCOMP_FILTER" if not kernel else f"there is no committed filter for {machine}: use x86_64 or aarch64"
    return Finding(name="seccomp", ok=kernel and bool(filters), detail=detail, mend=mend)


def cores() -> Finding:
    """Check for a core to measure on and one for the judge."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding(name="cores", ok=count >= 2, detail=str(count), mend="give this process two cores or more")


def builtin_problems() -> Finding:
    """Check that no built-in problem's file changed."""
    from problems import manifest
    from problems.errors import ProblemError

    try:
        manifest.verify()
    except ProblemError as error:
        return Finding(name="built-in problems", ok=False, detail=error.message, mend=error.hint)
    return Finding(name="built-in problems", ok=True, detail="as in the manifest")


def writable(name: str, path: Path, mend: str) -> Finding:
    """Check that a directory can be written, or that it can be made."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    why = "" if place == path else f" (to be made in {place})"
    if not place.is_dir():
        why = " is a file, not a directory" if place == path else f": {place} is a file, not a directory"
    elif not os.access(place, os.W_OK | os.X_OK):
        why = " cannot be written" if place == path else f": {place} cannot be written"
    ok = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return Finding(name=name, ok=ok, detail=f"{path}{why}", mend=mend)


def socket_place(socket: Path) -> Finding:
    """Check the socket's directory and the length of its path."""
    size = len(os.fsencode(socket.absolute()))
    if size > SOCKET_PATH_LIMIT:
        return Finding(name="socket", ok=False, detail=f"its path is {size} bytes: {socket}", mend="give a shorter one with --socket")
    return writable("socket", socket.parent, "set XDG_RUNTIME_DIR to a directory of yours, or give --socket")


def names(providers: Mapping[str, Sequence[str]] | None = None) -> Finding:
    """Check that no other distribution provides one of our top-level names."""
    known = importlib.metadata.packages_distributions() if providers is None else providers
    clashes = [f"{name} ({', '.join(sorted(set(others)))})" for name in PACKAGES if (others := _others(known.get(name, ())))]
    shadowed = [name for name in PACKAGES if _package_root(name) is None or _package_root(name) != _ours(name)]
    bad = clashes + [f"{name} (imported from elsewhere)" for name in shadowed]
    mend = "install ratchet in an environment of its own (make setup)"
    return Finding(name="package names", ok=not bad, detail=", ".join(bad) or "no clashes", mend=mend)


def optional(distribution: str, use: str) -> Finding:
    """Look for an optional part."""
    found = _version(distribution)
    return Finding(name=distribution, ok=found is not None, detail=found or "not installed", mend=use, needed=False)


def _others(distributions: Sequence[str]) -> list[str]:
    return [d for d in distributions if d.lower().replace("_", "-") != DISTRIBUTION]


def _ours(name: str) -> Path:
    return Path(__file__).resolve().parent.parent / name


def _package_root(name: str) -> Path | None:
    spec = find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]).resolve() if places else None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _try(command: list[str]) -> tuple[bool, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, one_line(str(error))
    return done.returncode == 0, one_line((done.stdout or done.stderr).split("\n")[0])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
