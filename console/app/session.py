"""One run as the console holds it: its state, what the link says, pages of records, gauges.

Invariant: records are folded as they arrive, by `state.reducer`, and nothing else changes the state;
screens learn of change by `version` only and are painted at their own pace.
Not for: painting, or several runs (the app holds one session at a time).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from console.errors import explain
from console.sources.base import Batch, Control, Link, Source, read
from console.views.experiment import Exhibits
from console.views.headline import Gauge, gauges_of
from console.views.records import as_struct
from evaluator.records import Result
from state.events import JobFinished, Record
from state.model import Experiment, Outcome, RunState
from state.reducer import apply

PAGE = 200
"""Records fetched at a time for the event log."""
PAGES_KEPT = 24


class Session:
    """A source and what came from it."""

    def __init__(self, source: Source, control: Control | None = None) -> None:
        self.source = source
        self.control = control
        self.state = RunState()
        self.link = Link(connected=True)
        self.gauges: dict[str, Gauge] = {}
        self.version = 0
        """Grows with every change that a screen could show."""
        self._pages: OrderedDict[int, dict[int, Record]] = OrderedDict()
        self._wanted: asyncio.Queue[int] = asyncio.Queue()
        self._asked: set[int] = set()

    @property
    def live(self) -> bool:
        """Whether a daemon is behind it."""
        return self.source.live

    async def open(self) -> None:
        """Take the state as of now."""
        self.state = await self.source.open()
        self.version += 1

    async def run(self) -> None:
        """Follow records, gauges and wanted pages until cancelled; an end that has a reason is shown as a lost link."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow())
                tasks.create_task(self._watch_gauges())
                tasks.create_task(self._fetch_pages())
        except* Exception as group:
            reasons = [explain(error) for error in group.exceptions]
            known = [reason.message for reason in reasons if reason is not None]
            if len(known) < len(reasons):
                raise
            self.take(Batch(link=Link(connected=False, detail="; ".join(known))))

    def take(self, batch: Batch) -> None:
        """Fold one batch."""
        if batch.state is not None:
            self.state = batch.state
            self._pages.clear()
            self._asked.clear()
        if batch.link is not None:
            self.link = batch.link
        for record in batch.records:
            apply(self.state, record)
            self._keep(record)
        self.version += 1

    def record(self, seq: int) -> Record | None:
        """Return a record that is at hand, else have its page fetched."""
        number = (seq - 1) // PAGE
        page = self._pages.get(number)
        if page is not None and seq in page:
            self._pages.move_to_end(number)
            return page[seq]
        if number not in self._asked and 1 <= seq <= self.state.seq and self.link.connected:
            self._asked.add(number)
            self._wanted.put_nowait(number)
        return None

    async def exhibits(self, experiment: Experiment) -> Exhibits | None:
        """Fetch the records and the text behind one experiment; None while the other side does not answer."""
        try:
            return await self._exhibits(experiment)
        except Exception as error:
            if explain(error) is None:
                raise
            return None

    async def _exhibits(self, experiment: Experiment) -> Exhibits:
        sha = experiment.final or (experiment.candidates[-1] if experiment.candidates else None)
        return Exhibits(
            evaluation=await self._result(experiment.evaluation),
            check=await self._result(experiment.check),
            robustness=await self._result(experiment.robustness),
            verdict=await self._result(experiment.verdict),
            source=await self.source.candidate(sha) if sha else None,
        )

    async def _result(self, outcome: Outcome | None) -> Result | None:
        record = await read(self.source, outcome.seq) if outcome else None
        event = as_struct(record, JobFinished) if record else None
        return event.result if event else None

    async def _follow(self) -> None:
        async with contextlib.aclosing(self.source.follow(self.state.seq)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                self.take(batch)

    async def _watch_gauges(self) -> None:
        async for values in self.source.gauges():
            self.take_gauges(values)

    def take_gauges(self, values: Mapping[str, Any]) -> None:
        """Replace the latest values."""
        self.gauges = gauges_of(values)
        self.version += 1

    async def _fetch_pages(self) -> None:
        while True:
            number = await self._wanted.get()
            try:
                for record in await self.source.page(number * PAGE, PAGE):
                    self._keep(record)
            except Exception as error:
                if explain(error) is None:
                    raise
            # A page that did not come is asked for again by whoever still shows it.
            self._asked.discard(number)
            self.version += 1

    def _keep(self, record: Record) -> None:
        page = self._pages.setdefault((record.seq - 1) // PAGE, {})
        page[record.seq] = record
        while len(self._pages) > PAGES_KEPT:
            self._pages.popitem(last=False)
