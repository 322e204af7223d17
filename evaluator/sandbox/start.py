"""Starts bubblewrap and brings its sandbox to the point just before the first instruction of the target.

Invariant: either everything asked for is in place (namespaces, ids, limits, filters) and a `Started` is returned, or nothing of the
sandbox is left and an EnvironmentFault says what bubblewrap or the launcher said.
Not for: what happens afterwards (`process`).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import EnvironmentFault
from evaluator.sandbox import layout, seccomp
from evaluator.sandbox.command import NOBODY, PASSWD, Bind, Descriptors, Profile, SandboxInfo, command
from evaluator.sandbox.limits import Limits
from evaluator.sandbox.output import Drain

GUARDIAN = Path(__file__).with_name("guardian.py")
START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A sandbox whose target is about to run."""

    guardian: subprocess.Popen[bytes]
    """Parent of bubblewrap; ends with its exit code."""
    lifeline: int
    """Closing it ends everything in the sandbox."""
    first_pid: int
    """Host pid of the first process of the PID namespace."""
    first: int
    """Descriptor of that process (pidfd)."""
    drain: Drain


def start(
    argv: Sequence[str],
    *,
    sandbox: SandboxInfo,
    profile: Profile,
    cores: Iterable[int] | None,
    limits: Limits,
    pass_fds: Sequence[int],
    binds: Sequence[Bind],
    devices: Sequence[Path],
    env: Mapping[str, str],
) -> Started:
    """Start one sandbox; see `SandboxProcess.start`."""
    deadline = time.monotonic() + START_TIMEOUT_S
    with ExitStack() as ours, ExitStack() as theirs, ExitStack() as opened:
        info, ready = _pipe(ours, theirs), _pipe(ours, theirs)
        user_map = _pipe(theirs, ours) if sandbox.drops_ids else None
        descriptors = Descriptors(
            filter=_kept(theirs, seccomp.filter_fd(profile)),
            info=info[1],
            passwd=_kept(theirs, seccomp.data_fd(PASSWD, "passwd")),
            ready=ready[1],
            user_map=None if user_map is None else user_map[0],
        )
        line = command(
            bwrap=sandbox.bwrap,
            profile=profile,
            argv=argv,
            descriptors=descriptors,
            layout=layout.current(),
            limits=limits,
            binds=binds,
            devices=devices,
            env=env,
        )
        guardian, lifeline, drain = _spawn(line, descriptors, pass_fds, cores, limits)
        theirs.close()
        try:
            first_pid = _read_info(info[0], deadline)
            first = _kept(opened, os.pidfd_open(first_pid))
            if user_map is not None:
                _map_ids(first_pid, user_map[1])
            if not _read(ready[0], deadline):
                raise EOFError
        except (OSError, ValueError, EOFError) as error:
            raise _fault(guardian, lifeline, drain, error) from error
        opened.pop_all()
    return Started(guardian=guardian, lifeline=lifeline, first_pid=first_pid, first=first, drain=drain)


def _spawn(
    line: Sequence[str], descriptors: Descriptors, pass_fds: Sequence[int], cores: Iterable[int] | None, limits: Limits
) -> tuple[subprocess.Popen[bytes], int, Drain]:
    fds = [d for d in (descriptors.filter, descriptors.info, descriptors.passwd, descriptors.ready, descriptors.user_map) if d is not None]
    with ExitStack() as ours, ExitStack() as theirs:
        out, err, life = _pipe(ours, theirs), _pipe(ours, theirs), _pipe(theirs, ours)
        places = "-" if cores is None else ",".join(map(str, cores))
        guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN), str(life[0]), places, *line],
            stdin=subprocess.DEVNULL,
            stdout=out[1],
            stderr=err[1],
            pass_fds=(*fds, *pass_fds, life[0]),
            env={},
            cwd="/",
            start_new_session=True,
        )
        ours.pop_all()
    return guardian, life[1], Drain({"stdout": out[0], "stderr": err[0]}, limits.output_bytes)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    return _kept(reader, read), _kept(writer, write)


def _kept(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _read(descriptor: int, deadline: float) -> bytes:
    readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    if not readable:
        raise OSError("it did not come up in time")
    return os.read(descriptor, 4096)


def _read_info(descriptor: int, deadline: float) -> int:
    text = b""
    while b"}" not in text:
        part = _read(descriptor, deadline)
        if not part:
            raise EOFError
        text += part
    return int(json.loads(text)["child-pid"])


def _map_ids(pid: int, go: int) -> None:
    """Map the judge's own id to 0 (bubblewrap mounts with it) and nobody to nobody (the launcher becomes it)."""
    for name, own in (("uid_map", os.geteuid()), ("gid_map", os.getegid())):
        Path(f"/proc/{pid}/{name}").write_text(f"0 {own} 1\n{NOBODY} {NOBODY} 1\n")
    os.write(go, b"\n")


def _fault(guardian: subprocess.Popen[bytes], lifeline: int, drain: Drain, error: Exception) -> EnvironmentFault:
    os.close(lifeline)
    guardian.wait()
    drain.join(5)
    said = [line for line in drain.text("stderr").splitlines() if line.strip()]
    reason = said[-1][:300] if said else (str(error) or "it ended without a word")
    return EnvironmentFault(
        f"the sandbox could not be started: {reason}", "see `ratchet doctor`, or run `bwrap --unshare-all --ro-bind / / true`"
    )
