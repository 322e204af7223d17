"""Looks at processes through /proc: who is in a PID namespace, how much memory they hold.

Invariant: reads only; a process that is gone is an empty answer, never an error.
Not for: signals (`process`), or the states of a process's threads (`evaluator.protocol.freeze`).
"""

from __future__ import annotations

import os

PAGE = os.sysconf("SC_PAGE_SIZE")


def pid_namespace(pid: int) -> int | None:
    """Inode of the PID namespace `pid` lives in; None when it is gone or not ours to see."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return None


def members(namespace: int) -> list[int]:
    """Host pids of every process in the PID namespace with this inode."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid_namespace(pid) == namespace]


def resident_bytes(pids: list[int]) -> int:
    """Sum of the resident sizes, shared pages counted in each."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as file:
                total += int(file.read().split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return total
