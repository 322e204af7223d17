"""Stopping a runner between its calls, and knowing that it is stopped.

The runner is one process (its sandbox denies fork), so a group stop reaches every thread it has.
Invariant: outside a timed call and the untimed operations, no thread of a runner is scheduled: it
cannot look at inputs early, nor work on after its answer without the clock running.
Not for: killing (`evaluator.sandbox`).
"""

from __future__ import annotations

import os
import signal
import time

STOP_TIMEOUT_S = 15.0
_STOPPED = (b"T", b"t", b"Z", b"X")


class NotStopping(Exception):
    """The process did not reach a stop within the deadline, or is gone."""


class Freezer:
    """Stop and continue one runner process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._leader = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)

    def stop(self) -> int:
        """Stop the process; return the time (ns, monotonic clock) at which its leader was seen stopped."""
        self._signal(signal.SIGSTOP)
        deadline = time.perf_counter_ns() + int(STOP_TIMEOUT_S * 1e9)
        while self._state(self._leader) not in _STOPPED:
            if time.perf_counter_ns() > deadline:
                raise NotStopping(f"process {self.pid} does not stop (state {self._state(self._leader).decode()})")
        return time.perf_counter_ns()

    def confirm(self) -> None:
        """Return once every thread is seen stopped."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not all(self._thread_stopped(task) for task in self._tasks()):
            if time.monotonic() > deadline:
                raise NotStopping(f"a thread of process {self.pid} does not stop")

    def resume(self) -> int:
        """Continue the process; return the time (ns) just before."""
        now = time.perf_counter_ns()
        self._signal(signal.SIGCONT)
        return now

    def close(self) -> None:
        """Release the kept descriptor."""
        os.close(self._leader)

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError as error:
            raise NotStopping(f"process {self.pid} is gone") from error

    def _state(self, descriptor: int) -> bytes:
        try:
            stat = os.pread(descriptor, 512, 0)
        except OSError:
            return b"X"
        return stat[stat.rindex(b")") + 2 :][:1]

    def _tasks(self) -> list[str]:
        try:
            return os.listdir(f"/proc/{self.pid}/task")
        except FileNotFoundError:
            return []

    def _thread_stopped(self, task: str) -> bool:
        try:
            with open(f"/proc/{self.pid}/task/{task}/stat", "rb") as stat:
                line = stat.read()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return line[line.rindex(b")") + 2 :][:1] in _STOPPED
