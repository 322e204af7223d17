"""Where in a journal the records of each kind are.

Eight bytes a record, so that an agent asking for one kind does not make the daemon read everything.
Invariant: holds exactly the durable, folded records.
Not for: the records themselves.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from state.events import Record
from state.model import RunState


class KindIndex:
    """Seqs by kind, in order."""

    def __init__(self) -> None:
        self._seqs: dict[str, array[int]] = {}

    def apply(self, record: Record) -> None:
        """Take one record in; they come in order of seq."""
        self._seqs.setdefault(record.kind, array("Q")).append(record.seq)

    def observe(self, records: Sequence[Record], state: RunState) -> None:
        """Take new records in (an `Observer`)."""
        for record in records:
            self.apply(record)

    def select(self, kinds: Collection[str], *, after: int = 0) -> Iterator[int]:
        """Seqs > `after` of records of these kinds, in order."""
        found = [self._seqs[kind] for kind in kinds if kind in self._seqs]
        return heapq.merge(*(seqs[bisect_right(seqs, after) :] for seqs in found))
