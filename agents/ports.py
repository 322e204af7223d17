"""What agents may ask of the run they work in.

The daemon implements `RunPort`; tests implement it over a journal in a temporary directory. Agents
only ever produce text and requests: every effect goes through here, is journalled first, and is
idempotent by its cause, so a conversation cut off anywhere can be taken up again from the journal.
Not for: deciding a promotion or running a judge; both happen on the other side.
"""

from __future__ import annotations

from typing import Any, Protocol

from evaluator.records import Job, Result
from state.events import Event, GateDecided, Record
from state.model import RunState


class RunPort(Protocol):
    """One run, seen from its agents."""

    @property
    def state(self) -> RunState:
        """The state folded from every record so far; never mutate it."""

    async def record(self, kind: str, actor: str, data: Event) -> Record:
        """Journal one record durably and return it.

        If `data` has a `cause` and the journal already holds this kind with this cause, nothing is
        written and the earlier record is returned.
        """

    async def read(self, seq: int) -> Record:
        """The record with this seq."""

    async def records(self, *, after: int = 0, kinds: frozenset[str] | None = None) -> list[Record]:
        """Records after `after`, of these kinds, in order."""

    async def evaluate(self, job: Job, *, owner: str, experiment: str | None, purpose: str, cause: str) -> Result:
        """Run one job through the evaluation queue and return its journalled result.

        `job.id` is given by the port: `kernel|<problem>|<owner>|<n>`, the same for the same `cause`.
        If that request already has a journalled result, it is returned and nothing is started.
        Candidate texts are stored under `candidates/<sha256>.py` first.
        """

    async def promote(self, experiment: str, *, cause: str) -> GateDecided:
        """Ask the gate; it decides from records alone and journals the answer (and the promotion)."""

    async def changed(self, after: int) -> None:
        """Return once the journal holds a record with seq > `after`."""

    async def checkpoint(self, actor: str) -> None:
        """Return when `actor` may take its next turn: at once while running, after resume while paused.

        Raises asyncio.CancelledError when the run stops.
        """

    async def store(self, text: str) -> str:
        """Store a candidate's text durably under `candidates/<sha256>.py` and return its sha256; idempotent."""

    def candidate(self, sha256: str) -> str:
        """The text of a stored candidate."""

    def reference_source(self) -> str:
        """The problem's own source text, as an agent may read it."""

    def settings(self) -> dict[str, Any]:
        """The run's resolved configuration (`[run]`, `[evaluation]`, `[agents]` tables)."""
