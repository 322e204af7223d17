"""What a run's agents may do: `agents.ports.RunPort` over its journal, its queue and its gate.

Invariant: every effect is journalled before anything acts on it and is idempotent by its cause: a
request id belongs to one cause for ever, has at most one result, and is not started again once it has
one. A job always judges this run's problem, device and profile, whatever the agent wrote into it.
Not for: when a run starts, pauses or ends (`daemon.run`), or how a judge is run (`daemon.queue`).
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from daemon import gate
from daemon.errors import BadRequest
from daemon.kind_index import KindIndex
from daemon.queue import EvaluationQueue, Ticket
from daemon.requests import Requests
from daemon.tasks import cancel, finish
from daemon.turns import TurnGate
from daemon.writer import Writer
from evaluator.records import Job, JobKind, Result, Source, decode
from problems import registry
from problems.model import Problem
from state.events import Event, GateDecided, JobFinished, JobStarted, JobVoided, Record
from state.files import RunFiles, read_candidate, store_candidate
from state.journal import Entry
from state.model import RunState


@dataclasses.dataclass(slots=True)
class _Running:
    task: asyncio.Task[Result]
    waiters: int = 0


class JournaledPort:
    """One run, seen from its agents."""

    def __init__(
        self,
        *,
        files: RunFiles,
        problem: Problem,
        writer: Writer,
        requests: Requests,
        kinds: KindIndex,
        queue: EvaluationQueue,
        turns: TurnGate,
    ) -> None:
        self._files = files
        self._problem = problem
        self._writer = writer
        self._requests = requests
        self._kinds = kinds
        self._queue = queue
        self._turns = turns
        self._running: dict[str, _Running] = {}
        self._promoting = asyncio.Lock()

    @property
    def state(self) -> RunState:
        """The state folded from every record so far; never mutate it."""
        return self._writer.state

    async def record(self, kind: str, actor: str, data: Event) -> Record:
        """Journal one record durably and return it; see `RunPort.record`."""
        records = await self._writer.commit([(kind, actor, data)], once=True)
        if kind == "agent.finished":
            self._turns.leave(str(records[0].data.get("agent", actor)))
        return records[0]

    async def read(self, seq: int) -> Record:
        """The record with this seq."""
        if not 1 <= seq <= self._writer.tail.seq:
            raise KeyError(seq)
        return self._writer.journal.read(seq)

    async def records(self, *, after: int = 0, kinds: frozenset[str] | None = None) -> list[Record]:
        """Records after `after`, of these kinds, in order."""
        last = self._writer.tail.seq
        seqs = range(max(after, 0) + 1, last + 1) if kinds is None else list(self._kinds.select(kinds, after=after))
        return await asyncio.to_thread(lambda: [self._writer.journal.read(seq) for seq in seqs])

    async def evaluate(self, job: Job, *, owner: str, experiment: str | None, purpose: str, cause: str) -> Result:
        """Run one job through the queue and return its journalled result; see `RunPort.evaluate`."""
        request = self._requests.assign(self.state.problem, owner=owner, cause=cause)
        known = self._requests.finished(request)
        if known is not None:
            return _result_of(self._writer.journal.read(known))
        running = self._running.get(request)
        if running is None:
            ours = self._ours(job, request)
            work = self._judge(ours, experiment=experiment, purpose=purpose, cause=cause)
            running = self._running[request] = _Running(asyncio.create_task(work, name=request))
        return await self._await(request, running)

    async def adopt(self, job: Job, result: Result, *, owner: str, purpose: str, cause: str) -> Result:
        """Journal a result of an earlier run as the answer to `job`, without running anything."""
        request = self._requests.assign(self.state.problem, owner=owner, cause=cause)
        known = self._requests.finished(request)
        if known is not None:
            return _result_of(self._writer.journal.read(known))
        ours = self._ours(job, request)
        answer = dataclasses.replace(result, job=request, wall_s=0.0, device_s=0.0)
        intent = _intent(ours, experiment=None, purpose=purpose, cause=cause)
        await self._writer.commit(
            [("job.started", "daemon", intent), ("job.finished", "daemon", JobFinished(request=request, result=answer))]
        )
        return answer

    async def promote(self, experiment: str, *, cause: str) -> GateDecided:
        """Ask the gate and journal its answer together with the promotion; see `RunPort.promote`."""
        async with self._promoting:
            known = self.state.effects.get(f"gate.decided {cause}")
            if known is not None:
                return await self._settled(known)
            evidence = await self.records(kinds=gate.KINDS)
            decided, promoted = gate.decide(self.state, evidence, experiment=experiment, cause=cause)
            entries: list[Entry] = [("gate.decided", "daemon", decided)]
            if promoted is not None:
                entries.append(("promotion", "daemon", promoted))
            await self._writer.commit(entries)
            return decided

    async def changed(self, after: int) -> None:
        """Return once the journal holds a record with seq > `after`."""
        with self._turns.waiting():
            await self._writer.tail.wait(after)
        if self._writer.tail.closed:
            raise asyncio.CancelledError

    async def checkpoint(self, actor: str) -> None:
        """Return when `actor` may take its next turn; CancelledError when the run stops."""
        await self._turns.enter(actor)

    async def store(self, text: str) -> str:
        """Store a candidate's text durably and return its sha256; idempotent."""
        return await asyncio.to_thread(store_candidate, self._files, text)

    def candidate(self, sha256: str) -> str:
        """The text of a stored candidate."""
        return read_candidate(self._files, sha256)

    def reference_source(self) -> str:
        """The problem's own source text, as an agent may read it."""
        return registry.source_text(self._problem)

    def settings(self) -> dict[str, Any]:
        """The run's resolved configuration."""
        return self.state.config

    async def settle_promotions(self) -> None:
        """Complete a promotion whose gate record was journalled just before a kill."""
        for record in await self.records(kinds=frozenset({"gate.decided"})):
            if record.data.get("promoted") is True:
                await self._settled(record.seq)

    async def _settled(self, seq: int) -> GateDecided:
        decided = gate.decided_of(self._writer.journal.read(seq))
        if decided.promoted and not any(p.experiment == decided.experiment and p.sha256 == decided.sha256 for p in self.state.promotions):
            evidence = [record for record in await self.records(kinds=gate.KINDS) if record.seq <= seq]
            promoted = gate.promotion_of(self.state, evidence, decided)
            await self._writer.commit([("promotion", "daemon", promoted)])
        return decided

    async def _await(self, request: str, running: _Running) -> Result:
        running.waiters += 1
        try:
            return await asyncio.shield(running.task)
        except asyncio.CancelledError:
            if running.waiters == 1 and not running.task.done():
                await finish(cancel(running.task))
            raise
        finally:
            running.waiters -= 1
            if running.task.done() or not running.waiters:
                self._running.pop(request, None)

    async def _judge(self, job: Job, *, experiment: str | None, purpose: str, cause: str) -> Result:
        with self._turns.occupied(job.id):
            for source in (job.candidate, job.champion):
                if source is not None:
                    await asyncio.to_thread(self._store, source)
            return await self._run(job, experiment=experiment, purpose=purpose, cause=cause)

    async def _run(self, job: Job, *, experiment: str | None, purpose: str, cause: str) -> Result:
        async def started() -> None:
            intent = _intent(job, experiment=experiment, purpose=purpose, cause=cause)
            await self._writer.commit([("job.started", "daemon", intent)])

        async def voided(why: str) -> None:
            await self._void(job.id, why)

        try:
            result = await self._queue.run(Ticket(run=self.state.run, job=job, started=started, voided=voided))
        except asyncio.CancelledError:
            await finish(self._void(job.id, "stopped before it was finished"))
            raise
        except Exception as error:
            await self._void(job.id, str(error) or type(error).__name__)
            raise
        finished = JobFinished(request=job.id, result=result, experiment=experiment)
        await finish(self._writer.commit([("job.finished", "evaluator", finished)]))
        return result

    async def _void(self, request: str, why: str) -> None:
        if request in self._requests.open:
            await self._writer.commit([("job.voided", "daemon", JobVoided(request=request, why=why[:400]))])

    def _ours(self, job: Job, request: str) -> Job:
        state = self.state
        options = dict(job.options)
        if job.kind is JobKind.AB and state.floor is not None:
            options.setdefault("floor", {"geomean": state.floor, "cases": dict(state.floor_by_case)})
        return dataclasses.replace(
            job,
            id=request,
            problem=state.problem,
            problem_sha256=state.problem_sha256,
            device=state.device,
            profile=state.profile,
            options=options,
        )

    def _store(self, source: Source) -> None:
        if store_candidate(self._files, source.text) != source.sha256:
            raise BadRequest(f"the candidate's text does not have the hash {source.sha256[:12]} it was submitted under")


def _intent(job: Job, *, experiment: str | None, purpose: str, cause: str) -> JobStarted:
    return JobStarted(
        request=job.id,
        kind=job.kind.value,
        experiment=experiment,
        candidate=job.candidate.sha256 if job.candidate else None,
        champion=job.champion.sha256 if job.champion else None,
        options=job.options,
        purpose=purpose,
        cause=cause,
    )


def _result_of(record: Record) -> Result:
    return decode(Result, record.data["result"])
