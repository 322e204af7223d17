"""Stopping a runner between its calls, and knowing that it is and stays stopped.

The runner is one process (its sandbox denies fork), so a group stop reaches every thread it has; its
sandbox leaves it nothing that sends SIGCONT. Both are checked, not believed: a stop is over only when
every thread is seen stopped, and at the next resume no thread may have run, come or gone meanwhile.
Invariant: outside a timed call and the untimed operations, no thread of a runner is scheduled: it
cannot look at inputs early, nor work on after its answer without the clock running.
Not for: killing (`evaluator.sandbox`).
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

STOP_TIMEOUT_S = 15.0
STIR_NS = 50_000
"""A thread preempted on its last steps into the stop may run that much afterwards."""
KEPT_DESCRIPTORS = 64
_STOPPED = (b"T", b"t")
_ENDED = (b"Z", b"X")


class NotStopping(Exception):
    """The process did not reach a stop within the deadline, or it or its main thread is gone."""


class Stirred(Exception):
    """A thread ran while the process was to be stopped."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How long and how often one thread has been on a core; zeros where the kernel does not say."""

    run_ns: int = 0
    times: int = 0

    def since(self, before: Ran) -> bool:
        """Whether it was put on a core again for more than the last steps of its stop."""
        return self.times != before.times and self.run_ns - before.run_ns > STIR_NS


class Freezer:
    """Stop and continue one runner process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._leader = str(pid)
        self._tasks = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._states: dict[str, int] = {}
        self._rest: dict[str, Ran] | None = None
        """What every thread had run when all were seen stopped; None while the process runs."""

    @property
    def stopped(self) -> bool:
        """Whether it was stopped here and not continued since."""
        return self._rest is not None

    def stop(self) -> None:
        """Stop the process; return when its main thread is seen stopped."""
        self._signal(signal.SIGSTOP)
        deadline = time.perf_counter_ns() + int(STOP_TIMEOUT_S * 1e9)
        while (state := self._state(self._leader)) not in _STOPPED:
            if state in _ENDED:
                raise NotStopping(f"the main thread of process {self.pid} ended")
            if time.perf_counter_ns() > deadline:
                raise NotStopping(f"process {self.pid} does not stop (state {state.decode()})")

    def confirm(self) -> int:
        """Return, once every thread is seen stopped, the time (ns, monotonic clock) at which it was."""
        deadline = time.perf_counter_ns() + int(STOP_TIMEOUT_S * 1e9)
        while not self._all_stopped():
            if time.perf_counter_ns() > deadline:
                raise NotStopping(f"a thread of process {self.pid} does not stop")
        seen = time.perf_counter_ns()
        self._rest = self._ran()
        return seen

    def rest(self) -> None:
        """Stop it where it is not stopped yet, and see every thread of it stopped."""
        if not self.stopped:
            self.stop()
            self.confirm()

    def resume(self) -> int:
        """Continue the process; return the time (ns) just before. Raises `Stirred` where it was not still."""
        if self._rest is not None:
            self._require_still(self._rest)
        self._rest = None
        now = time.perf_counter_ns()
        self._signal(signal.SIGCONT)
        return now

    def close(self) -> None:
        """Release the kept descriptors."""
        for descriptor in (self._tasks, *self._states.values()):
            os.close(descriptor)
        self._states.clear()

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError as error:
            raise NotStopping(f"process {self.pid} is gone") from error

    def _threads(self) -> list[str]:
        try:
            return os.listdir(self._tasks)
        except OSError:
            return []

    def _all_stopped(self) -> bool:
        """One pass over all threads, the main one last: it is the one that a wake-up would show in."""
        threads = self._threads()
        if self._leader not in threads:
            raise NotStopping(f"process {self.pid} is gone")
        for name in self._states.keys() - set(threads):
            os.close(self._states.pop(name))
        threads.remove(self._leader)
        return all(self._state(name) in _STOPPED for name in (*threads, self._leader))

    def _require_still(self, rest: dict[str, Ran]) -> None:
        now = self._ran()
        if not now:
            raise NotStopping(f"process {self.pid} is gone")
        if now.keys() != rest.keys() or any(ran.since(rest[name]) for name, ran in now.items()):
            raise Stirred("a thread ran while the process was stopped")

    def _ran(self) -> dict[str, Ran]:
        return {name: self._ran_by(name) for name in self._threads()}

    def _ran_by(self, thread: str) -> Ran:
        try:
            fields = self._read(f"{thread}/schedstat").split()
            return Ran(int(fields[0]), int(fields[2]))
        except (OSError, IndexError):
            return Ran()

    def _state(self, thread: str) -> bytes:
        """One letter; X for a thread that is gone."""
        try:
            if (descriptor := self._states.get(thread)) is None:
                if len(self._states) >= KEPT_DESCRIPTORS:
                    return _letter(self._read(f"{thread}/stat"))
                descriptor = self._states[thread] = self._open(f"{thread}/stat")
            return _letter(os.pread(descriptor, 512, 0))
        except OSError:
            return b"X"

    def _open(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._tasks)

    def _read(self, path: str) -> bytes:
        descriptor = self._open(path)
        try:
            return os.read(descriptor, 512)
        finally:
            os.close(descriptor)


def _letter(stat: bytes) -> bytes:
    """The state in a stat line; the name before it may hold anything, the last bracket ends it."""
    return stat[stat.rindex(b")") + 2 :][:1]
