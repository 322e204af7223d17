"""Which runs there are, which are open in this daemon, and who looks after each.

Invariant: one run's failure is that run's; a journal that cannot be opened keeps its run out and is
named, and the daemon goes on with the others; a run that was not at rest is taken up again on start.
Not for: what happens inside a run (`daemon.run`, `daemon.control`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from daemon import creation
from daemon.control import Control
from daemon.errors import NotFound, Refused
from daemon.gauges import Gauges
from daemon.orders import Order
from daemon.projector import Projector
from daemon.run import AT_REST, Run, Surroundings
from daemon.tail import Tail
from state.errors import StateError
from state.events import RunStateChanged
from state.files import RunFiles, list_runs
from state.rows import RunRow, run_row
from state.store import Store

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Charge:
    """One open run and its control."""

    run: Run
    control: Control


class Supervisor:
    """The runs of one state directory."""

    def __init__(self, root: Path, *, store: Store, around: Surroundings) -> None:
        self._root = root
        self._store = store
        self._charges: dict[str, Charge] = {}
        self._opening = asyncio.Lock()
        self._closing = False
        self._projector = Projector(store, find=lambda run: self._charges[run].run if run in self._charges else None)
        self._around = replace(around, observers=(*around.observers, self._projector.observe, self._observe))
        self.damaged: dict[str, StateError] = {}
        """Runs whose journal cannot be opened, and why."""
        self.changes = Tail()
        """Grows with every record of every run."""

    @property
    def gauges(self) -> Gauges:
        """Latest values of every run."""
        return self._around.gauges

    @property
    def busy(self) -> bool:
        """Whether any run is not at rest."""
        return bool(self.unfinished())

    async def rested(self) -> None:
        """Return once there is a run and every run is at rest."""
        while self.busy or not self._charges:
            await self.changes.wait(self.changes.seq)

    def unfinished(self) -> list[str]:
        """Runs that are not at rest."""
        return sorted(name for name, charge in self._charges.items() if charge.run.state.status not in AT_REST)

    async def start(self) -> None:
        """Open every run that was not at rest: journals are repaired, orders of an earlier life brought to their end."""
        for name in list_runs(self._root):
            if not await self._rested(name):
                await self._take_up(name)

    def go_on(self) -> None:
        """Take up the search of every run that runs."""
        for charge in self._charges.values():
            if charge.run.state.status == "running":
                charge.run.begin()

    async def list(self) -> list[RunRow]:
        """Every run that can be read, the latest first: from the projection, open ones as they are now."""
        open_now = {name: _row(charge.run) for name, charge in self._charges.items() if charge.run.state.run}
        return [open_now.get(row.run, row) for row in await self._store.list_runs()]

    async def get(self, run: str) -> Charge:
        """An open run; one at rest is opened for reading. NotFound or StateError says why there is none."""
        async with self._opening:
            self._refuse_while_closing()
            if run in self._charges:
                return self._charges[run]
            if run not in list_runs(self._root):
                raise NotFound(f"there is no run {run[:100]!r}", "see: ratchet status")
            return await self._open(run)

    async def create(self, asked: creation.NewRun, order: Order) -> tuple[str, int]:
        """Make a run and start it; the same order again answers the run it made."""
        async with self._opening:
            self._refuse_while_closing()
            known = await self._made_by(order)
            if known is not None:
                return known.id, 1
            plan = await creation.plan(asked, order=order, devices=self._around.queue.devices)
            files = RunFiles(self._root, creation.run_id(plan, order))
            await asyncio.to_thread(creation.make, files, plan)
            run = (await self._open(files.run)).run
            entries = [("run.created", "operator", plan.created), ("run.state", "daemon", RunStateChanged(state="running"))]
            records = await run.writer.commit(entries)
            await self._projector.project(run)
            run.begin()
            _log.info("run created", run=run.id, problem=plan.created.problem, uid=order.uid)
            return run.id, records[0].seq

    async def close(self) -> None:
        """End every search and its jobs, and close every journal; unfinished runs are taken up by the next start."""
        if self._closing:
            return
        self._closing = True
        async with self._opening:
            charges = list(self._charges.values())
            await asyncio.gather(*(charge.control.close() for charge in charges))
            await asyncio.gather(*(charge.run.close() for charge in charges))
            await self._projector.close()
            self.changes.close()
            self.gauges.changes.close()

    def release(self) -> None:
        """Let go of every journal, once nobody reads them any more."""
        for charge in self._charges.values():
            charge.run.release()

    async def _take_up(self, name: str) -> None:
        try:
            run = (await self._open(name)).run
        except StateError as error:
            self.damaged[name] = error
            _log.error("run left out", run=name, why=error.message, mend=error.hint)
            return
        if not run.state.run:
            _log.warning("a run that was never created is left out", run=name)
            await self._let_go(name)
        elif run.state.status in AT_REST:
            await self._let_go(name)
        else:
            await run.settle()
            _log.info("run taken up", run=run.id, status=run.state.status, seq=run.tail.seq)

    async def _rested(self, name: str) -> bool:
        """Whether the projection knows the run to be at rest and its journal has not changed since."""
        row = await self._store.run(name)
        if row is None or row.status not in AT_REST:
            return False
        return await asyncio.to_thread(_ends_with, RunFiles(self._root, name).journal, row.hash)

    async def _open(self, name: str) -> Charge:
        run = Run.open(RunFiles(self._root, name), around=self._around)
        charge = self._charges[name] = Charge(run=run, control=Control(run))
        if run.state.run:
            await self._projector.project(run)
        return charge

    async def _let_go(self, name: str) -> None:
        charge = self._charges.pop(name)
        await charge.control.close()
        await charge.run.close()
        charge.run.release()

    async def _made_by(self, order: Order) -> Run | None:
        for name in list_runs(self._root):
            if name.endswith(f"-{creation.token_of(order)}"):
                charge = self._charges.get(name) or await self._open(name)
                if f"run.created {order.cause}" in charge.run.state.effects:
                    return charge.run
                if charge.run.state.run:
                    raise Refused(f"the idempotency key {order.key} belongs to another run", "choose another key")
        return None

    def _refuse_while_closing(self) -> None:
        if self._closing:
            raise Refused("the daemon is stopping", "start it again: ratchet daemon")

    def _observe(self, records: object, state: object) -> None:
        self.changes.advance(self.changes.seq + 1)


def _row(run: Run) -> RunRow:
    return run_row(run.state, run=run.id, seq=run.state.seq, digest=run.writer.journal.last_hash)


def _ends_with(journal: Path, digest: str) -> bool:
    ending = b'"hash":"%s"}\n' % digest.encode()
    try:
        with journal.open("rb") as file:
            file.seek(-len(ending), 2)
            return file.read() == ending
    except OSError:
        return False
