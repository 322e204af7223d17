"""Which evaluation belongs to which cause, and which of them are open.

Folded from the same records as the run's state; pure.
Invariant: a cause has one request id for ever, whatever was killed in between; an id has at most one
result; a request is open when it was started and neither finished nor voided.
Not for: running or journalling jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from state.events import Record
from state.model import RunState


class Requests:
    """Request ids of one run."""

    def __init__(self) -> None:
        self._by_cause: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._finished: dict[str, int] = {}

    @property
    def open(self) -> list[str]:
        """Requests whose intent is journalled and whose end is not, oldest first."""
        return list(self._open)

    def finished(self, request: str) -> int | None:
        """Seq of the request's `job.finished`."""
        return self._finished.get(request)

    def assign(self, problem: str, *, owner: str, cause: str) -> str:
        """The request id of `cause`: the one it has had, else the owner's next."""
        known = self._by_cause.get(cause)
        if known is not None:
            return known
        owner = owner.replace("|", "_")
        number = self._counts.get(owner, 0) + 1
        self._counts[owner] = number
        request = f"kernel|{problem.replace('|', '_')}|{owner}|{number}"
        self._by_cause[cause] = request
        return request

    def observe(self, records: Sequence[Record], state: RunState) -> None:
        """Take new records in (an `Observer`)."""
        for record in records:
            self.apply(record)

    def apply(self, record: Record) -> None:
        """Take one journalled record in."""
        request = record.data.get("request")
        if not isinstance(request, str):
            return
        if record.kind == "job.started":
            self._open[request] = record.seq
            self._remember(request, record.data.get("cause"))
        elif record.kind == "job.finished":
            self._open.pop(request, None)
            self._finished[request] = record.seq
        elif record.kind == "job.voided":
            self._open.pop(request, None)

    def _remember(self, request: str, cause: object) -> None:
        if isinstance(cause, str):
            self._by_cause[cause] = request
        _, _, owner, number = request.rsplit("|", 3) if request.count("|") >= 3 else ("", "", "", "")
        if number.isdigit():
            self._counts[owner] = max(self._counts.get(owner, 0), int(number))
