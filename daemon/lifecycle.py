"""The daemon's life: lock, repair, project, bind, ready; and the way back.

Start order: lock of the state directory → orphans of an earlier life ended → journals opened and repaired,
the projection caught up or built again → socket bound → searches taken up → ready. A client that connects
is never told of a state that is still being put together.
Invariant: whatever fails on the way in undoes what was done; the way out is bounded: searches and jobs
are ended and journalled first, then streams say goodbye, then the socket goes, then the locks.
Not for: command line parsing.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from daemon import affinity, processes
from daemon.api.application import Identity, application
from daemon.executors.base import Executor
from daemon.executors.local import LocalExecutor, judge_command
from daemon.executors.spool import SpoolExecutor
from daemon.gauges import Gauges
from daemon.listener import listening
from daemon.locks import InstanceLock
from daemon.places import Places, check_socket_path, default_socket, prepare_state_dir
from daemon.preparation import Qualifications
from daemon.queue import EvaluationQueue
from daemon.run import Surroundings
from daemon.search import Search, agent_search
from daemon.server import serving
from daemon.supervisor import Supervisor
from state.journal import utc_now
from state.store import Store

CLOSING_LIMIT_S = 30.0
"""Longest that searches and jobs get to end; what is left then is named in the log."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one daemon was asked to be."""

    state_dir: Path
    socket: Path | None = None
    once: bool = False
    """End when every run is at rest, once there was one."""
    judge: Sequence[str] = field(default_factory=judge_command)
    devices: Sequence[str] = ("cpu",)
    spools: Mapping[str, Path] = field(default_factory=dict)
    """Devices whose jobs go through a directory to workers elsewhere."""
    search: Search = agent_search


async def serve(settings: Settings) -> None:
    """Live until told to end; raises DaemonError or StateError where the start fails."""
    socket = settings.socket or default_socket(settings.state_dir)
    check_socket_path(socket)
    places = prepare_state_dir(settings.state_dir)
    told = asyncio.Event()
    with _locked(places, socket), _signals(told):
        async with _supervising(places, settings) as supervisor:
            await supervisor.start()
            with listening(socket) as bound:
                identity = _identity(places, socket)
                async with serving(application(supervisor, identity=identity, shut_down=told.set), bound):
                    supervisor.go_on()
                    _ready(identity)
                    await _until(told, supervisor, once=settings.once)
                    _log.info("stopping")
                    await _close(supervisor)


@contextlib.contextmanager
def _locked(places: Places, socket: Path) -> Iterator[None]:
    with InstanceLock(places.lock, what=f"the state directory {places.state_dir}") as lock:
        lock.note({"pid": os.getpid(), "socket": str(socket.absolute())})
        yield


@contextlib.asynccontextmanager
async def _supervising(places: Places, settings: Settings) -> AsyncIterator[Supervisor]:
    """Everything behind the API; the journals are let go of last, when no stream reads them any more."""
    await _clear_jobs(places)
    layout = affinity.current()
    affinity.pin(layout)
    gauges = Gauges()
    executors: dict[str, Executor] = {
        device: LocalExecutor(device=device, jobs=places.jobs, command=settings.judge, layout=layout) for device in settings.devices
    }
    executors |= {device: SpoolExecutor(device=device, directory=path) for device, path in settings.spools.items()}
    around = Surroundings(
        queue=EvaluationQueue(executors, gauges=gauges),
        gauges=gauges,
        qualifications=Qualifications(places.state_dir / "qualifications"),
        search=settings.search,
    )
    store = await Store.open(places.state_dir / "projection.sqlite")
    if store.dropped:
        _log.warning("projection dropped and filled again", why=store.dropped)
    supervisor = Supervisor(places.state_dir, store=store, around=around)
    try:
        yield supervisor
    finally:
        await _close(supervisor)
        supervisor.release()
        await store.close()


async def _clear_jobs(places: Places) -> None:
    """End what an earlier life left running, then remove its files."""
    ended = await processes.end_orphans(places.jobs)
    if ended:
        _log.warning("ended processes of an earlier life", groups=ended)
    for directory in places.jobs.iterdir():
        shutil.rmtree(directory, ignore_errors=True)


async def _until(told: asyncio.Event, supervisor: Supervisor, *, once: bool) -> None:
    if not once:
        await told.wait()
        return
    telling = asyncio.create_task(told.wait())
    resting = asyncio.create_task(supervisor.rested())
    await asyncio.wait({telling, resting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (telling, resting):
        task.cancel()


async def _close(supervisor: Supervisor) -> None:
    try:
        async with asyncio.timeout(CLOSING_LIMIT_S):
            await supervisor.close()
    except TimeoutError:
        _log.error("abandoned on the way out", runs=supervisor.unfinished())


@contextlib.contextmanager
def _signals(told: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, told.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _identity(places: Places, socket: Path) -> Identity:
    try:
        version = importlib.metadata.version("kernel-ratchet")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    return Identity(
        pid=os.getpid(), version=version, state_dir=str(places.state_dir.absolute()), socket=str(socket.absolute()), started_ts=utc_now()
    )


def _ready(identity: Identity) -> None:
    """The one line on stdout that whoever started us waits for."""
    _log.info("ready", socket=identity.socket, state_dir=identity.state_dir)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps({"ready": True, "socket": identity.socket, "pid": identity.pid}) + "\n")
        sys.stdout.flush()
