"""First code inside the sandbox: lowers the limits, drops what is left of privileges, seals, then runs the target.

    python -I -B /ratchet/launch.py CONFIG TARGET [ARGUMENT...]

CONFIG is a JSON object: `limits` {RLIMIT name: value}, `ids` [uid, gid] or null, `seal` (path of a second system-call filter, or null),
`path` (entries for sys.path), `ready` (descriptor that gets one byte when all of it is in place), `close` (descriptors that are left over),
`exec` (true: replace this process by TARGET; false: run TARGET as a Python program in it).

Invariant: standard library only and nothing of ours is imported, since only this file is mounted; the seal is installed before the
target's first instruction and refuses every further exec.
Not for: anything that knows about problems or measurements.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import runpy
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CAPABILITY_VERSION_3 = 0x20080522


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def lower_limits(limits: dict[str, int]) -> None:
    """Set soft and hard limits; a machine's own lower hard limit stays."""
    for name, value in limits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def drop_ids(uid: int, gid: int) -> None:
    """Become an id without capabilities."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    libc = ctypes.CDLL(None, use_errno=True)
    header, empty = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, empty):
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def seal(path: str) -> None:
    """Install the system-call filter at `path` for this process and what it starts."""
    with open(path, "rb") as file:
        data = file.read()
    program = _Program(len(data) // 8, data)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the second system-call filter was refused")


def main() -> None:
    """Apply CONFIG, then run the target."""
    config = json.loads(sys.argv[1])
    if config["ids"]:
        drop_ids(*config["ids"])
    lower_limits(config["limits"])
    if config["seal"]:
        seal(config["seal"])
    os.write(config["ready"], b"\n")
    for descriptor in (config["ready"], *config["close"]):
        os.close(descriptor)
    del sys.argv[:2]
    if config["exec"]:
        os.execv(sys.argv[0], sys.argv)
    sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(__file__)]
    sys.path.extend(entry for entry in config["path"] if entry not in sys.path)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
