"""Looks at processes through /proc: who is in a PID namespace, which of their tasks can run, how much memory they hold.

Invariant: reads only; a process that is gone is an empty answer, never an error.
Not for: signals (`process`).
"""

from __future__ import annotations

import os

STOPPED = frozenset("TtZX")
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


class TaskStates:
    """States of all tasks of one process, read through kept descriptors."""

    def __init__(self, pid: int) -> None:
        self._directory = f"/proc/{pid}/task"
        self._files: dict[str, int] = {}

    def all_stopped(self) -> bool:
        """Whether no task of the process can run: each is stopped or dead. True when the process is gone."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            return True
        for name in self._files.keys() - set(names):
            os.close(self._files.pop(name))
        return all(self._state(name) in STOPPED for name in names)

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _state(self, name: str) -> str:
        try:
            if name not in self._files:
                self._files[name] = os.open(f"{self._directory}/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._files[name], 512, 0)
        except OSError:
            return "X"
        return chr(data[data.rindex(b")") + 2])
