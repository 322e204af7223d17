"""Runner processes that are started ahead: sandboxed, their libraries imported, stopped, and no source seen.

A start takes seconds on one core, so those that a job will use are started together, on all cores.
Each has two directories of its own, empty until its runner is named: what is written there then is all
that it will ever see.
Invariant: no runner is asked anything while another one still starts; a spare stands still while
others are measured, and is used once.
Not for: what a runner is asked (`judge.runner`).
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from evaluator.devices.device import Device
from evaluator.devices.processor import raise_priority
from evaluator.judge import replies
from evaluator.judge.outcome import Infrastructure
from evaluator.protocol.channel import Channel, ChannelError
from evaluator.protocol.clock import Clock, Spinning, Stopped
from evaluator.protocol.freeze import Freezer, NotStopping
from evaluator.protocol.mailbox import Mailbox
from evaluator.protocol.memory import open_memory
from evaluator.sandbox.command import Bind, Profile
from evaluator.sandbox.process import SandboxProcess

START_TIMEOUT_S = 120.0
FILES_INSIDE = "/subject"
EXTENSIONS_INSIDE = "/extensions"
AT_ONCE = 4
"""Starts under way at the same time."""

Launch = Callable[[Profile, list[int], list[Bind]], SandboxProcess]
"""Starts the runner program in a sandbox with these descriptors (control, request page, answer page) and mounts."""


class Spare:
    """One started runner process; `settled` once it is up and stopped."""

    def __init__(self, launch: Launch, profile: Profile, work: Path) -> None:
        self.files = _directory(work, "files-")
        self.extensions = _directory(work, "extensions-")
        self.mailbox = Mailbox()
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), self.mailbox.request_fd, self.mailbox.answer_fd]
        binds = [Bind(source=self.files, target=FILES_INSIDE), Bind(source=self.extensions, target=EXTENSIONS_INSIDE)]
        self.process = launch(profile, descriptors, binds)
        theirs.close()
        self.channel = Channel(ours)
        self.pid: int
        self.clock: Clock
        self.memory: int
        self.settled = False
        self.closed = False

    def settle(self, device: Device) -> None:
        """Wait until the process is up, stop it and put it on the measuring cores; nothing the second time.

        Nothing of a candidate is in there yet: whatever goes wrong is infrastructure.
        """
        if self.settled or self.closed:
            return
        try:
            inside = replies.number(self.channel.answer("start", timeout_s=START_TIMEOUT_S), "ready")
            pid = _host_pid(self.process, inside)
            self.pid = pid
            self._freezer = Freezer(pid)
            self.clock = (Stopped if device.stands_still else Spinning)(self.mailbox, self._freezer)
            self.memory = open_memory(pid)
            self.settled = True
            self._freezer.stop()
            self._freezer.confirm()
            device.cores.take_over(pid)
            raise_priority(pid, realtime=device.stands_still)
        except (ChannelError, NotStopping, OSError, replies.BadReply) as error:
            ended = self.process.wait(2.0)
            words = f": it {ended.words()}" if ended else ""
            raise Infrastructure(f"a runner did not start: {error}{words}", log=self.process.stderr) from error

    def close(self) -> None:
        """Kill the whole sandbox and verify that it is gone. Does nothing the second time."""
        if self.closed:
            return
        self.closed = True
        self.channel.close()
        self.process.kill()
        if self.settled:
            self._freezer.close()
            os.close(self.memory)
        self.mailbox.close()


class Spares:
    """The started runners of one job that nobody uses yet."""

    def __init__(self, launch: Launch, device: Device, work: Path) -> None:
        self._launch = launch
        self._device = device
        self._work = work
        self._waiting: list[Spare] = []
        self._starting: list[Spare] = []
        self._expected = 0

    def expect(self, runners: int) -> None:
        """Say how many more runners this job will use, so that they are started together and none in vain."""
        self._expected = runners

    def take(self, profile: Profile = "run") -> Spare:
        """One for use, perhaps still starting: `settle` before it is asked anything."""
        if profile != "run":
            return self._start(profile)
        if not self._waiting:
            for _ in range(max(1, min(AT_ONCE, self._expected))):
                self._waiting.append(self._start("run"))
        self._expected -= 1
        return self._waiting.pop(0)

    def settle(self) -> None:
        """Wait for every start that is under way, so that none disturbs what follows."""
        while self._starting:
            self._starting.pop(0).settle(self._device)

    def close(self) -> None:
        """End those that were not used."""
        for spare in self._waiting:
            spare.close()
        self._waiting.clear()
        self._starting.clear()

    def _start(self, profile: Profile) -> Spare:
        spare = Spare(self._launch, profile, self._work)
        self._starting.append(spare)
        return spare


def _directory(work: Path, prefix: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=work))
    folder.chmod(0o755)  # the sandbox runs as another user where the judge is root
    return folder


def _host_pid(process: SandboxProcess, inside: int) -> int:
    """The host's number of the process that calls itself `inside` in its own namespace."""
    for pid in process.members():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:") and int(line.split()[-1]) == inside:
                return pid
    raise Infrastructure("the runner's process was not found")
