"""A run told in lines: for pipes, logs, screen readers, and terminals that want no screens.

Invariant: what is printed is a function of the records alone, so the same journal prints the same
story live and replayed; nothing is printed twice and nothing is skipped.
Not for: where the lines go (`console.cli.output`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from console.sources.base import Batch, Source
from console.views import story
from console.views.doc import Line, line
from console.views.summary import Summary, Tally, summarize
from state.events import Record
from state.model import RunState
from state.reducer import apply

AT_REST = frozenset({"finished", "stopped", "failed"})

Write = Callable[[Iterable[Line]], None]


@dataclass
class Teller:
    """Folds records and tells each that means something."""

    write: Write
    state: RunState = field(default_factory=RunState)
    tally: Tally = field(default_factory=Tally)

    def take(self, records: Iterable[Record]) -> None:
        """Fold and tell records in order; one that was told already is left out."""
        for record in records:
            if record.seq <= self.state.seq:
                continue
            apply(self.state, record)
            self.tally.apply(record, self.state)
            told = story.tell(record, start=self.state.started_ts)
            if told is not None:
                self.write([told])

    @property
    def summary(self) -> Summary:
        """What the run came to so far."""
        return summarize(self.state, self.tally)


async def tell_all(source: Source, teller: Teller) -> None:
    """Tell every record that the source has now."""
    while records := await source.page(teller.state.seq, 500):
        teller.take(records)


async def tell_on(source: Source, teller: Teller) -> None:
    """Tell records as they come, until the run is at rest."""
    async with contextlib.aclosing(source.follow(teller.state.seq)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            _take(teller, batch)
            if teller.state.status in AT_REST:
                return


def _take(teller: Teller, batch: Batch) -> None:
    teller.take(batch.records)
    if batch.link is not None:
        words = "connected again" if batch.link.connected else f"disconnected: {batch.link.detail}; trying again"
        teller.write([line((words, "warn"))])
