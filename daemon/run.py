"""One run that is open in this daemon: its journal, its state, its search as one task.

Invariant: the state a run is in is journalled before it is acted on; a search that fails ends its run
with one line of reason and takes nothing else down; closing leaves a journal from which the next daemon
goes on.
Not for: what an operator may ask for (`daemon.control`) or which runs there are (`daemon.supervisor`).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog

from daemon.gauges import Gauges
from daemon.kind_index import KindIndex
from daemon.preparation import Qualifications, prepare
from daemon.queue import EvaluationQueue
from daemon.requests import Requests
from daemon.run_port import JournaledPort
from daemon.search import Search
from daemon.tail import Tail
from daemon.tasks import cancel
from daemon.turns import TurnGate
from daemon.world_model_file import WorldModelFile, documents
from daemon.writer import Observer, Writer
from problems import registry
from problems.model import Problem
from state.checkpoint import restore
from state.errors import StateError
from state.events import JobVoided, Note, Record, RunResumed, RunStateChanged
from state.files import RunFiles
from state.journal import Entry, Journal
from state.model import RunState

AT_REST = ("stopped", "finished", "failed")
"""States in which no search belongs to a run."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every run of a daemon shares."""

    queue: EvaluationQueue
    gauges: Gauges
    qualifications: Qualifications
    search: Search
    observers: Sequence[Observer] = ()
    """Told of every durable group of records."""


class Run:
    """One open run."""

    def __init__(self, files: RunFiles, journal: Journal, *, state: RunState, around: Surroundings) -> None:
        self.files = files
        self.nonce = secrets.token_hex(8)
        """Of this journal in this life of the daemon."""
        self.turns = TurnGate()
        self._around = around
        self._requests, self._kinds = Requests(), KindIndex()
        written = set[str]()
        for record in journal.walk():
            self._requests.apply(record)
            self._kinds.apply(record)
            written |= documents([record])
        self._world_model = WorldModelFile(files, state, known=written)
        observers = (self._requests.observe, self._kinds.observe, self._world_model.observe, *around.observers)
        self.writer = Writer(journal, state=state, observers=observers)
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    @classmethod
    def open(cls, files: RunFiles, *, around: Surroundings) -> Run:
        """Open the journal, repair its end, and fold the state; StateError says why it cannot be."""
        journal = Journal.open(files.journal, run=files.run)
        try:
            run = cls(files, journal, state=restore(files.journal, journal), around=around)
        except BaseException:
            journal.close()
            raise
        if journal.repaired:
            _log.warning("journal repaired", run=files.run, what=journal.repaired)
        return run

    @property
    def id(self) -> str:
        """The run's id."""
        return self.files.run

    @property
    def state(self) -> RunState:
        """The state folded from every durable record."""
        return self.writer.state

    @property
    def tail(self) -> Tail:
        """The end of its journal."""
        return self.writer.tail

    @property
    def searching(self) -> bool:
        """Whether its search is a task of this daemon now."""
        return self._task is not None and not self._task.done()

    @property
    def tail_seq(self) -> int:
        """Seq of the last record that is durable and folded in."""
        return self.tail.seq

    def hash_at(self, seq: int) -> str | None:
        """Hash of one such record."""
        return self.writer.journal.hash_at(seq) if seq <= self.tail.seq else None

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Such records after `after`, in order."""
        last = self.tail.seq
        return itertools.takewhile(lambda record: record.seq <= last, self.writer.journal.walk(after))

    def page(self, after: int, *, limit: int) -> list[Record]:
        """At most `limit` such records with seq > `after`."""
        records = self.writer.journal.since(after, limit)
        return [record for record in records if record.seq <= self.tail.seq]

    async def settle(self) -> None:
        """After an earlier life of the daemon: void what was cut off and bring every order to its end."""
        open_requests = self._requests.open
        entries: list[Entry] = [
            ("job.voided", "daemon", JobVoided(request=request, why="the daemon that ran it ended")) for request in open_requests
        ]
        entries.append(("run.resumed", "daemon", RunResumed(pid=os.getpid(), voided=open_requests)))
        if self.writer.journal.repaired:
            entries.append(("note", "daemon", Note(text=f"journal repaired: {self.writer.journal.repaired}", level="warning")))
        state = self.state
        if state.status == "draining" or state.requested == "pause":
            entries.append(("run.state", "daemon", RunStateChanged(state="paused", reason="nothing is in flight after a restart")))
        elif state.status == "new":
            entries.append(("run.state", "daemon", RunStateChanged(state="running")))
        elif state.status == "stopping" or state.requested == "stop":
            entries.append(("run.state", "daemon", RunStateChanged(state="stopped", reason="stopped by a restart of the daemon")))
        await self.writer.commit(entries)

    def begin(self) -> None:
        """Start the search, or take it up from the journal."""
        if not self.searching:
            self.turns, self._ending = TurnGate(), False
            self._task = asyncio.create_task(self._work(), name=f"search {self.id}")

    async def end_search(self) -> None:
        """Cancel the search and wait until it and its jobs are gone."""
        self._ending = True
        self.turns.stop()
        if self._task is not None:
            await cancel(self._task)

    async def close(self) -> None:
        """End everything of this run in this daemon; the journal says it still runs, if it did, and stays readable."""
        await self.end_search()
        await self.writer.finish()
        await self._world_model.close()
        self._around.gauges.forget(self.id)

    def release(self) -> None:
        """Let go of the journal."""
        self.writer.journal.close()

    async def _work(self) -> None:
        try:
            problem = await asyncio.to_thread(registry.load, self.state.problem, expected_sha256=self.state.problem_sha256)
            port = self._port(problem)
            await port.settle_promotions()
            await prepare(port, self._around.qualifications)
            self.turns.leave("daemon")
            await self._around.search(port)
        except asyncio.CancelledError:
            if self._ending:
                raise
            await self._say("failed", "the search was cut off without being asked to end")
        except Exception as error:
            _log.exception("run failed", run=self.id)
            await self._say("failed", reason_of(error))
        else:
            await self._say("finished", "the search is finished")
        finally:
            self._around.gauges.forget(self.id)

    def _port(self, problem: Problem) -> JournaledPort:
        return JournaledPort(
            files=self.files,
            problem=problem,
            writer=self.writer,
            requests=self._requests,
            kinds=self._kinds,
            queue=self._around.queue,
            turns=self.turns,
        )

    async def _say(self, status: str, reason: str) -> None:
        try:
            await self.writer.commit([("run.state", "daemon", RunStateChanged(state=status, reason=reason))])
        except StateError as error:
            _log.error("cannot journal the run's state", run=self.id, state=status, why=error.message)
            self._around.gauges.set("", "fault", {"run": self.id, "message": error.message, "hint": error.hint})


def reason_of(error: BaseException) -> str:
    """One line for people: the message of an error that has one, else its type and first line."""
    if isinstance(error, BaseExceptionGroup):
        return reason_of(next((one for one in error.exceptions if getattr(one, "message", "")), error.exceptions[0]))
    message = getattr(error, "message", None)
    if isinstance(message, str) and message:
        hint = getattr(error, "hint", "")
        return " ".join(f"{message}{f' ({hint})' if hint else ''}".split())[:500]
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]
