"""The bubblewrap argument vector of one sandbox.

Invariant: every namespace is new, every capability dropped (or dropped by the launcher's id change), the environment is what is listed
here, and the only writable place is the size-limited /scratch unless a bind says otherwise.
Not for: starting it (`process`) or what the host shows (`layout`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.sandbox import layout as host
from evaluator.sandbox import seccomp
from evaluator.sandbox.layout import Layout
from evaluator.sandbox.limits import Limits

Profile = Literal["build", "run"]
"""`build`: compilers, so fork and exec. `run`: one process, no fork, no further exec."""

OURS = "/ratchet"
SCRATCH = "/scratch"
NOBODY = 65534
DEVICES = ("null", "zero", "full", "random", "urandom")
"""No terminals: the hang-up of one continues a stopped process."""
DEVICE_LINKS = (("/proc/self/fd", "fd"), ("/proc/self/fd/0", "stdin"), ("/proc/self/fd/1", "stdout"), ("/proc/self/fd/2", "stderr"))
PASSWD = f"sandbox:x:{NOBODY}:{NOBODY}::{SCRATCH}:/bin/false\nroot:x:0:0::{SCRATCH}:/bin/false\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxInfo:
    """A sandbox that works on this machine, as `probe.require_sandbox` found it."""

    bwrap: Path
    version: str
    """As bubblewrap prints it: `bubblewrap 0.8.0`."""
    architecture: str
    drops_ids: bool
    """Whether the judge may map a second id: the candidate then runs as nobody even where the judge is root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One mount of a job."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """Descriptors that bubblewrap reads or writes, open in the starting process."""

    filter: int
    info: int
    passwd: int
    ready: int
    """Write end for the launcher's byte."""
    user_map: int | None = None
    """Read end that holds bubblewrap until the starter has written the id maps; None: bubblewrap maps one id by itself."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The whole environment inside; `extra` adds to it and wins."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": SCRATCH,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **extra,
    }


def command(
    *,
    bwrap: Path,
    profile: Profile,
    argv: Sequence[str],
    descriptors: Descriptors,
    layout: Layout,
    limits: Limits,
    binds: Sequence[Bind] = (),
    devices: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the argument vector that runs `argv` under `profile`.

    `argv[0]` is a path inside the sandbox: a Python program under `run` (it shares the launcher's process), an executable under `build`.
    """
    return [
        str(bwrap),
        *_namespaces(profile, descriptors),
        *_filesystem(layout, limits, descriptors),
        *(part for device in devices for part in ("--dev-bind", str(device), str(device))),
        *(part for bind in binds for part in _mount("--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target)),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--clearenv", *(part for name, value in environment(env or {}).items() for part in ("--setenv", name, value))),
        *("--chdir", SCRATCH, "--"),
        *_launch(profile, argv, layout, limits, descriptors),
    ]


def _namespaces(profile: Profile, descriptors: Descriptors) -> list[str]:
    options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    options += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--seccomp", str(descriptors.filter), "--info-fd", str(descriptors.info)]
    if descriptors.user_map is None:
        options += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    else:
        options += [
            "--uid",
            "0",
            "--gid",
            "0",
            "--userns-block-fd",
            str(descriptors.user_map),
            "--cap-add",
            "CAP_SETUID",
            "--cap-add",
            "CAP_SETGID",
        ]
    if profile == "run":
        options.append("--as-pid-1")  # exactly one process: nothing beside it could wake it while it is stopped
    return options


def _filesystem(layout: Layout, limits: Limits, descriptors: Descriptors) -> list[str]:
    options: list[str] = []
    for name in host.SYSTEM:
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            options += ["--ro-bind", name, name]
    options += [part for name in (*host.HIDDEN, "/etc", OURS) for part in ("--dir", name)]
    for name in (*host.SYSTEM_FILES, *host.PROCESSOR_FACTS):
        if os.path.exists(name):
            options += _mount("--ro-bind", name, name)
    options += [
        "--proc",
        "/proc",
        "--ro-bind",
        "/proc/sys",
        "/proc/sys",
    ]  # root's id may write kernel settings without any capability
    options += ["--tmpfs", "/dev", *(part for name in DEVICES for part in ("--dev-bind", f"/dev/{name}", f"/dev/{name}"))]
    options += [part for target, name in DEVICE_LINKS for part in ("--symlink", target, f"/dev/{name}")]
    options += ["--dir", "/dev/shm"]
    options += [part for directory in layout.prefixes for part in _mount("--ro-bind", str(directory), str(directory))]
    options += [part for directory in layout.masks for part in ("--tmpfs", str(directory), "--remount-ro", str(directory))]
    options += ["--ro-bind-data", str(descriptors.passwd), "/etc/passwd"]
    options += ["--ro-bind", str(Path(__file__).with_name("launch.py")), f"{OURS}/launch.py"]
    options += ["--ro-bind", str(seccomp.filter_path("seal")), f"{OURS}/seal.bpf"]
    options += ["--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", SCRATCH]
    return options


def _mount(option: str, source: str, target: str) -> list[str]:
    """One mount; its parents are made first, since bubblewrap would make those of a file unreadable for another id."""
    parents = [str(p) for p in reversed(Path(target).parents) if str(p) != "/"]
    return [*(part for parent in parents for part in ("--dir", parent)), option, source, target]


def _launch(profile: Profile, argv: Sequence[str], layout: Layout, limits: Limits, descriptors: Descriptors) -> list[str]:
    config = {
        "limits": limits.resources(),
        "ids": None if descriptors.user_map is None else [NOBODY, NOBODY],
        "seal": f"{OURS}/seal.bpf" if profile == "run" else None,
        "path": list(layout.path),
        "ready": descriptors.ready,
        "close": [] if descriptors.user_map is None else [descriptors.user_map],
        "exec": profile == "build",
    }
    return [str(layout.python), "-I", "-B", f"{OURS}/launch.py", json.dumps(config, separators=(",", ":")), *argv]
