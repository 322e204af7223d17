"""The demo: a real optimisation of a built-in problem, on this machine's CPU, with no key.

Only the text of the agents is scripted; every build, check, timing, A/B, refusal and promotion is
computed while it runs.
Invariant: the demo has a state directory and a daemon of its own; taking the same directory again goes
on where it was; nothing is stopped without saying so.
Not for: the session's text (`agents.sessions`) or how it is shown.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from console.errors import ConsoleError
from console.plain import Teller, tell_all
from console.sources.journal import JournalSource
from console.views.summary import Summary
from daemon import launch
from daemon.client import Client, DaemonError
from daemon.errors import AlreadyRunning
from daemon.places import SOCKET_PATH_LIMIT, find_socket
from state.files import RunFiles, state_dir

PROBLEM = "builtin:scan"
KEY = "demo"
"""Idempotency key of the demo's run: the same directory never gets a second one."""


class DemoStopped(ConsoleError):
    """The demo's daemon is gone before its run was at rest."""

    code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """One demo under way."""

    state_dir: Path
    socket: Path
    pid: int | None
    """Of the daemon that this command started; None where one ran already."""

    def journal(self, run: str) -> Path:
        """The run's journal."""
        return RunFiles(self.state_dir, run).journal

    @property
    def alive(self) -> bool:
        """Whether the daemon that this command started still runs."""
        if self.pid is None:
            return True
        try:
            # It is our child: a kill leaves a zombie, which os.kill would take for alive.
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return Path(f"/proc/{self.pid}").exists()


def stopped(found: Demo) -> DemoStopped:
    """Say that the demo's daemon is gone, and how to go on."""
    return DemoStopped("the demo's daemon has ended", f"go on with: ratchet demo --state-dir {found.state_dir}")


def new_state_dir() -> Path:
    """A fresh directory for one demo, beside the user's own runs."""
    now = datetime.datetime.now(datetime.UTC)
    return state_dir() / f"demo-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def start(directory: Path) -> Demo:
    """Start the demo's daemon on `directory`, or find the one that runs there."""
    directory = directory.expanduser().absolute()
    try:
        launched = launch.launch(directory, socket=socket_of(directory))
    except AlreadyRunning:
        return Demo(state_dir=directory, socket=find_socket(directory), pid=None)
    return Demo(state_dir=directory, socket=launched.socket, pid=launched.pid)


def socket_of(directory: Path) -> Path:
    """A socket of the demo's own, never the user's usual one."""
    beside = directory / "ratchet.sock"
    if len(os.fsencode(beside)) <= SOCKET_PATH_LIMIT:
        return beside
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"ratchet-{os.getuid()}" / f"demo-{name}.sock"


async def begin(client: Client) -> str:
    """Start the demo's run, or return the one this directory has."""
    return (await client.start(PROBLEM, model="scripted", session="demo", title="demo", key=KEY)).run


async def end(demo: Demo, client: Client) -> None:
    """Ask the demo's daemon to end, and wait for it where it is ours."""
    try:
        await client.shutdown()
    except DaemonError:
        if demo.alive and demo.pid is not None:
            launch.stop(demo.pid)


async def summary_of(journal: Path) -> Summary:
    """What the run came to, from its journal alone."""
    source = JournalSource(journal)
    try:
        await source.open()
        teller = Teller(write=lambda rows: None)
        await tell_all(source, teller)
    finally:
        await source.close()
    return teller.summary
