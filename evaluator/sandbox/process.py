"""One sandboxed process: started, watched, waited for, and killed with everything in it.

Invariant: after `kill` returns, nothing of the sandbox is left, or it raises; when the starting process dies in any way, so does
the sandbox (`guardian`).
Not for: what the process is asked to do, or for stopping it between its calls (`evaluator.protocol.freeze`).
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from evaluator.errors import EvaluatorError
from evaluator.sandbox import start as starting
from evaluator.sandbox import tasks
from evaluator.sandbox.command import Bind, Profile, SandboxInfo
from evaluator.sandbox.limits import Limits

KILL_TIMEOUT_S = 20.0
WATCH_EVERY_S = 0.2

Reason = Literal["exit", "signal", "killed", "memory"]


class SandboxError(EvaluatorError):
    """The sandbox did not do what the evaluation rests on: it is not gone."""

    code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a sandboxed process ended."""

    reason: Reason
    """`exit`: by itself; `signal`: a crash; `killed`: by us; `memory`: over its memory, ended by us or by the kernel."""
    code: int
    """Exit code; 128 + number for a signal, as bubblewrap reports it."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.reason == "exit" and self.code == 0

    def words(self) -> str:
        """One line for a person."""
        if self.reason == "signal":
            return f"crashed with {signal.Signals(self.code - 128).name}"
        if self.reason == "memory":
            return "used more memory than it may"
        return "was stopped by the evaluator" if self.reason == "killed" else f"ended with exit code {self.code}"


class SandboxProcess:
    """Handle of one sandbox and of the process it was started for. A context manager: leaving it kills the sandbox."""

    def __init__(self, started: starting.Started, *, profile: Profile, limits: Limits) -> None:
        self.first_pid = started.first_pid
        """Host pid of the namespace's first process: the runner itself under `run`."""
        self._guardian = started.guardian
        self._lifeline = started.lifeline
        self._drain = started.drain
        self._first = started.first
        self._single = profile == "run"
        self._namespace = tasks.pid_namespace(started.first_pid)
        self._limits = limits
        self._ended_by_us: Reason | None = None
        self._closed = False

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        sandbox: SandboxInfo,
        profile: Profile,
        affinity: Iterable[int] | None = None,
        limits: Limits | None = None,
        pass_fds: Sequence[int] = (),
        binds: Sequence[Bind] = (),
        devices: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> SandboxProcess:
        """Start `argv` in a new sandbox; returns when limits and filters are in place, just before the first instruction of `argv`.

        Under `run`, `argv[0]` is a Python program (a path inside); under `build` an executable. `affinity` are the cores it stays on.
        Raises EnvironmentFault where the sandbox cannot be made.
        """
        limits = limits or Limits()
        started = starting.start(
            argv,
            sandbox=sandbox,
            profile=profile,
            cores=affinity,
            limits=limits,
            pass_fds=pass_fds,
            binds=binds,
            devices=devices,
            env=env or {},
        )
        return cls(started, profile=profile, limits=limits)

    @property
    def stdout(self) -> str:
        """What it printed so far, bounded and cleaned."""
        return self._drain.text("stdout")

    @property
    def stderr(self) -> str:
        """What it wrote to stderr so far, bounded and cleaned."""
        return self._drain.text("stderr")

    def members(self) -> list[int]:
        """Host pids of everything in the sandbox's PID namespace."""
        if self._gone():
            return []
        if self._single:
            return [self.first_pid]
        return [] if self._namespace is None else tasks.members(self._namespace)

    def resident_bytes(self) -> int:
        """Resident memory of everything in the sandbox."""
        return tasks.resident_bytes(self.members())

    def wait(self, timeout_s: float) -> Exit | None:
        """Wait until it ends, at most `timeout_s`; None when it still runs. Its memory is watched meanwhile."""
        deadline = time.monotonic() + timeout_s
        while self._guardian.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.enforce_memory()
            try:
                self._guardian.wait(min(WATCH_EVERY_S, left))
            except subprocess.TimeoutExpired:
                continue
        self._drain.join(KILL_TIMEOUT_S if self._single else WATCH_EVERY_S)
        return self._exit()

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""
        return None if self._guardian.poll() is None else self._exit()

    def kill(self) -> None:
        """Kill everything in the sandbox and see that it is gone. Does nothing the second time.

        The first process of a PID namespace ends only after every other process in it: its end is the proof.
        """
        if self._closed:
            return
        if self._guardian.poll() is None and self._ended_by_us is None:
            self._ended_by_us = "killed"
        self._send_first(signal.SIGKILL)
        if not _ended(self._first, KILL_TIMEOUT_S):
            raise SandboxError("a killed sandbox is still there", f"look at process {self.first_pid} and its children")
        os.close(self._lifeline)
        self._guardian.wait(KILL_TIMEOUT_S)
        self._drain.join(KILL_TIMEOUT_S)
        self._close()

    def __enter__(self) -> SandboxProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def _exit(self) -> Exit:
        code = self._guardian.returncode
        code = 128 - code if code < 0 else code
        if self._ended_by_us is not None:
            return Exit(reason=self._ended_by_us, code=code)
        if code == 128 + signal.SIGKILL:
            return Exit(reason="memory", code=code)
        crashed = code > 128 and code - 128 in {int(s) for s in signal.Signals}
        return Exit(reason="signal" if crashed else "exit", code=code)

    def enforce_memory(self) -> None:
        """Kill the sandbox where it holds more memory than it may; its exit then says `memory`."""
        cap = self._limits.resident_bytes
        if cap is not None and self.resident_bytes() > cap:
            self._ended_by_us = "memory"
            self._send_first(signal.SIGKILL)

    def _send_first(self, number: signal.Signals) -> None:
        try:
            signal.pidfd_send_signal(self._first, number)
        except ProcessLookupError:
            return

    def _gone(self) -> bool:
        return self._closed or _ended(self._first, 0)

    def _close(self) -> None:
        self._closed = True
        os.close(self._first)


def _ended(pidfd: int, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))
