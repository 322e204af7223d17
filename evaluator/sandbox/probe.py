"""Finds out whether this machine can confine a candidate, and says what to mend where it cannot.

Invariant: an answer means that a sandbox with every namespace, the filters and the launcher really ran.
Not for: choosing limits or running candidates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from evaluator.errors import EnvironmentFault
from evaluator.sandbox import seccomp
from evaluator.sandbox.command import SandboxInfo
from evaluator.sandbox.process import SandboxProcess

ENVIRONMENT_VARIABLE = "RATCHET_BWRAP"
USER_NAMESPACE_SYSCTLS: tuple[tuple[str, str, int], ...] = (
    ("kernel.unprivileged_userns_clone", "1", 0),
    ("user.max_user_namespaces", "10000", 0),
    ("kernel.apparmor_restrict_unprivileged_userns", "0", 1),
)
"""Name, the value that mends it, the value that refuses."""


def require_sandbox(bwrap_path: str | Path | None = None) -> SandboxInfo:
    """Return how to confine a candidate here; an EnvironmentFault with the mend where that is not possible.

    The path is `bwrap_path`, else the variable RATCHET_BWRAP, else the one on PATH.
    """
    bwrap = find_bwrap(bwrap_path)
    seccomp.filter_path("run")
    found = version(bwrap)
    _try_namespaces(bwrap)
    info = SandboxInfo(bwrap=bwrap, version=found, architecture=seccomp.architecture(), drops_ids=os.geteuid() == 0)
    if info.drops_ids and not _can_map_two_ids(info):
        info = SandboxInfo(bwrap=bwrap, version=found, architecture=info.architecture, drops_ids=False)
    return info


def find_bwrap(path: str | Path | None = None) -> Path:
    """Return the bubblewrap executable, without running it."""
    asked = path or os.environ.get(ENVIRONMENT_VARIABLE)
    found = shutil.which(str(asked) if asked else "bwrap")
    if found is None:
        where = f"bubblewrap is not at {asked}" if asked else "bubblewrap (bwrap) is not installed: candidates cannot be confined"
        raise EnvironmentFault(where, "install it: `apt-get install bubblewrap` (or name its path in RATCHET_BWRAP)")
    return Path(found).resolve()


def version(bwrap: Path) -> str:
    """What `bwrap --version` prints."""
    try:
        done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10, env={}, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFault(f"{bwrap} does not run: {error}", "install it again: `apt-get install --reinstall bubblewrap`") from error
    return done.stdout.strip()[:80]


def _try_namespaces(bwrap: Path) -> None:
    options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--uid", "65534", "--gid", "65534"]
    options += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    try:
        done = subprocess.run([bwrap, *options, "--", "/bin/true"], capture_output=True, text=True, timeout=20, env={})
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFault("bubblewrap did not finish an empty command in 20 s", "look for a stuck mount below /") from error
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
        raise EnvironmentFault(f"bubblewrap cannot make its namespaces here: {reason}", namespace_mend(Path("/proc/sys")))


def namespace_mend(proc_sys: Path) -> str:
    """Name the sysctl that refuses user namespaces, or say that a container does."""
    for name, value, refusing in USER_NAMESPACE_SYSCTLS:
        file = proc_sys / name.replace(".", "/")
        try:
            refused = int(file.read_text()) == refusing
        except (OSError, ValueError):
            continue
        if refused:
            return f"user namespaces are refused: `sysctl -w {name}={value}` as root"
    return "inside a container, start it so that it may create user namespaces (a seccomp or AppArmor profile refuses them)"


def _can_map_two_ids(info: SandboxInfo) -> bool:
    try:
        with SandboxProcess.start(["/bin/true"], sandbox=info, profile="build") as process:
            ended = process.wait(20)
    except EnvironmentFault:
        return False
    return ended is not None and ended.ok
