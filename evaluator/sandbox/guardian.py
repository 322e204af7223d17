"""Stands between the judge and bubblewrap, and leaves nothing behind when the judge dies.

    python -I -S guardian.py LIFELINE CORES BWRAP [ARGUMENT...]

Bubblewrap's own parent-death signal has a gap: a sandbox that is being set up when its parent is killed stays behind, waiting for ever. The
guardian closes it: it is the reaper of everything below it, and when the pipe LIFELINE closes (the judge is gone, or lets go) it kills all
of that and waits until it is gone.

What it starts runs on CORES (numbers with commas, or `-`) at ordinary priority; the guardian itself stays where the judge is, ahead of
every measured process: one that never sleeps cannot keep it from its work.

Invariant: it ends with bubblewrap's exit code (128 + n for a signal), and only when it has no child left.
Not for: anything about the candidate. Standard library only; it runs outside the sandbox, before anything of ours could be imported.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36
LEVEL = 2
"""Real-time level, above that of measured processes."""


def go_ahead() -> None:
    """Be scheduled ahead of everything measured, where this user may; children start at ordinary priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(LEVEL))
    except OSError:
        return


def spawn_on(cores: str, argv: list[str]) -> int:
    """Start `argv` on these cores; return its pid."""
    own = os.sched_getaffinity(0)
    if cores != "-":
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    pid = os.posix_spawn(argv[0], argv, {})
    os.sched_setaffinity(0, own)
    return pid


def children() -> list[int]:
    """Pids of this process's direct children; a process whose parent died becomes one."""
    me, found = os.getpid(), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                data = file.read()
        except OSError:
            continue
        if int(data[data.rindex(b")") + 2 :].split()[1]) == me:
            found.append(int(name))
    return found


def end_everything(first: int) -> int | None:
    """Kill and reap until no child is left; return the wait status of `first` where it was among them."""
    status = None
    while pids := children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            ended, how = os.waitpid(pid, 0)
            status = how if ended == first else status
    return status


def main(lifeline: int, cores: str, argv: list[str]) -> int:
    """Run bubblewrap until it ends or the lifeline closes."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        return 125
    os.set_inheritable(lifeline, False)
    go_ahead()
    first = spawn_on(cores, argv)
    poller = select.poll()
    poller.register(lifeline, select.POLLIN)
    poller.register(os.pidfd_open(first), select.POLLIN)
    poller.poll()
    ended, status = os.waitpid(first, os.WNOHANG)
    rest = end_everything(first)
    code = os.waitstatus_to_exitcode(status if ended else rest or 0)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
