"""What an operator may ask of a run, and what the run then is.

    running ── pause ──▶ draining ── everybody at rest ──▶ paused ── resume ──▶ running
       any of these ── stop ──▶ stopping ── search and jobs gone ──▶ stopped ── resume ──▶ running

Invariant: an order and the state it brings about are journalled together before anything happens, and
its seq is the answer; an order sent twice under one key is one order; `paused` is only ever said when
nothing is inside a turn.
Not for: who may ask; the socket decides that.
"""

from __future__ import annotations

import asyncio

from daemon.errors import Refused
from daemon.orders import Order, check_nudge
from daemon.run import AT_REST, Run
from daemon.tasks import cancel
from state.events import NudgeQueued, RunControl, RunStateChanged
from state.journal import Entry

OPERATOR = "operator"


class Control:
    """Carries out orders on one run, one at a time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._one_at_a_time = asyncio.Lock()
        self._draining: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def pause(self, order: Order, *, reason: str = "") -> int:
        """Let turns in flight finish and hold every next one; returns the order's seq."""
        async with self._one_at_a_time:
            if (known := self._known("run.control", order)) is not None:
                return known
            self._refuse("pause", in_states=(*AT_REST, "stopping"))
            entries = [_order("pause", order, reason)]
            if self._status not in ("draining", "paused"):
                self._run.turns.close()
                entries.append(self._state("draining", reason))
                seq = await self._commit(entries)
                self._draining = asyncio.create_task(self._drain(), name=f"drain {self._run.id}")
                return seq
            return await self._commit(entries)

    async def resume(self, order: Order, *, reason: str = "") -> int:
        """Let turns be taken again; a stopped or failed run takes its search up from the journal."""
        async with self._one_at_a_time:
            if (known := self._known("run.control", order)) is not None:
                return known
            self._refuse("resume", in_states=("finished", "stopping"))
            await self._end_draining()
            entries = [_order("resume", order, reason)]
            if self._status != "running":
                entries.append(self._state("running", reason))
            seq = await self._commit(entries)
            self._run.begin()
            self._run.turns.open()
            return seq

    async def stop(self, order: Order, *, reason: str = "") -> int:
        """End the search and its jobs; the answer comes at once, `stopped` when they are gone."""
        async with self._one_at_a_time:
            if (known := self._known("run.control", order)) is not None:
                return known
            self._refuse("stop", in_states=AT_REST)
            await self._end_draining()
            entries = [_order("stop", order, reason)]
            if self._status != "stopping":
                entries.append(self._state("stopping", reason))
            seq = await self._commit(entries)
            if self._stopping is None or self._stopping.done():
                self._stopping = asyncio.create_task(self._end(), name=f"stop {self._run.id}")
            return seq

    async def nudge(self, order: Order, *, text: str, category: str) -> int:
        """Queue a message to the orchestrator; returns its seq."""
        check_nudge(text, category)
        if (known := self._known("nudge.queued", order)) is not None:
            return known
        self._refuse("nudge", in_states=("finished",))
        nudge = NudgeQueued(nudge=f"nudge:{order.key}", text=text, category=category, uid=order.uid, cause=order.cause)
        records = await self._run.writer.commit([("nudge.queued", OPERATOR, nudge)], once=True)
        return records[0].seq

    async def close(self) -> None:
        """End what orders still have under way, and the search with its jobs."""
        async with self._one_at_a_time:
            await self._end_draining()
            if self._stopping is not None:
                await asyncio.wait({self._stopping})
            await self._run.end_search()

    @property
    def _status(self) -> str:
        return self._run.state.status

    def _known(self, kind: str, order: Order) -> int | None:
        return self._run.state.effects.get(f"{kind} {order.cause}")

    def _refuse(self, what: str, *, in_states: tuple[str, ...]) -> None:
        if self._status in in_states:
            raise Refused(f"cannot {what} run {self._run.id}: it is {self._status}")

    def _state(self, state: str, reason: str) -> Entry:
        in_flight = [*self._run.turns.acting] if state in ("draining", "stopping") else []
        return ("run.state", "daemon", RunStateChanged(state=state, reason=reason, in_flight=in_flight))

    async def _commit(self, entries: list[Entry]) -> int:
        return (await self._run.writer.commit(entries, once=True))[0].seq

    async def _drain(self) -> None:
        await self._run.turns.rested()
        if self._status == "draining":
            await self._commit([self._state("paused", "")])

    async def _end_draining(self) -> None:
        if self._draining is not None and not self._draining.done():
            await cancel(self._draining)

    async def _end(self) -> None:
        await self._run.end_search()
        if self._status == "stopping":
            await self._commit([self._state("stopped", "")])


def _order(action: str, order: Order, reason: str) -> Entry:
    return ("run.control", OPERATOR, RunControl(action=action, reason=reason[:400], uid=order.uid, cause=order.cause))
