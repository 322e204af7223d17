"""A run port for tests: an in-memory journal folded by the real reducer, a double of the evaluator.

The double judges by words in the candidate's text (`# speedup 3.0`, `# incorrect`, `# compile_error`,
`# refused`), the gate by the same few facts the real one starts from. `stop_after=k` kills the run right
after the k-th record became durable: from then on every call is cancelled, as it is when a run stops.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from evaluator.records import (
    Audit,
    CaseCheck,
    CaseRatio,
    CaseTiming,
    Claim,
    Decision,
    Evaluation,
    Interval,
    Job,
    JobKind,
    Result,
    Robustness,
    RobustnessPart,
    Source,
    Status,
    Verdict,
    decode,
    encode,
)
from state.events import Event, GateCheck, GateDecided, JobFinished, JobStarted, JobVoided, NudgeQueued, Promoted, Record, RunCreated
from state.model import RunState
from state.reducer import apply, fold

CASES = ["short", "long"]
FLOOR = 0.01
ZEROS = "0" * 64


class Journal:
    """What survives a kill: records and candidate texts."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.candidates: dict[str, str] = {}

    def begin(self) -> Journal:
        created = RunCreated(
            title="t",
            problem="builtin:scan",
            problem_sha256="p" * 64,
            problem_title="scan",
            cases=CASES,
            device="cpu",
            model="scripted",
            profile="open",
            gate="test gate",
        )
        self.append("run.created", "daemon", created)
        return self

    def append(self, kind: str, actor: str, data: Event) -> Record:
        plain = msgspec.json.decode(msgspec.json.encode(encode(msgspec.to_builtins(data))))
        record = Record(v=1, seq=len(self.records) + 1, ts="", run="r", kind=kind, actor=actor, data=plain, prev=ZEROS, hash=ZEROS)
        self.records.append(record)
        return record


class FakePort:
    """`agents.ports.RunPort` over a `Journal`."""

    def __init__(
        self,
        journal: Journal,
        *,
        stop_after: int | None = None,
        settings: dict[str, Any] | None = None,
        judge: Callable[[Job], Result] | None = None,
    ) -> None:
        self.journal = journal
        self.judge = judge or judged
        self.stop_after = stop_after
        self.dead = False
        self.started: list[str] = []
        """Request ids the double was really asked for."""
        self.state: RunState = fold(journal.records)
        self._settings = settings or {}
        self._condition = asyncio.Condition()
        self._void_open_jobs()

    def _void_open_jobs(self) -> None:
        for flight in list(self.state.in_flight):
            self._write("job.voided", "daemon", JobVoided(request=flight.request, why="killed"))

    def _write(self, kind: str, actor: str, data: Event) -> Record:
        record = self.journal.append(kind, actor, data)
        apply(self.state, record)
        return record

    def _alive(self) -> None:
        if self.dead:
            raise asyncio.CancelledError

    async def _commit(self, kind: str, actor: str, data: Event) -> Record:
        self._alive()
        record = self._write(kind, actor, data)
        if self.stop_after is not None and record.seq >= self.stop_after:
            self.dead = True
        async with self._condition:
            self._condition.notify_all()
        self._alive()
        return record

    async def record(self, kind: str, actor: str, data: Event) -> Record:
        cause = getattr(data, "cause", None)
        if cause is not None and (seq := self.state.effects.get(f"{kind} {cause}")) is not None:
            return self.journal.records[seq - 1]
        return await self._commit(kind, actor, data)

    async def read(self, seq: int) -> Record:
        return self.journal.records[seq - 1]

    async def records(self, *, after: int = 0, kinds: frozenset[str] | None = None) -> list[Record]:
        await asyncio.sleep(0)
        return [r for r in self.journal.records[after:] if kinds is None or r.kind in kinds]

    async def evaluate(self, job: Job, *, owner: str, experiment: str | None, purpose: str, cause: str) -> Result:
        self._alive()
        starts = [r for r in self.journal.records if r.kind == "job.started"]
        known = next((r.data["request"] for r in starts if r.data["cause"] == cause), None)
        count = len({r.data["request"] for r in starts if r.data["experiment"] == experiment})
        request = known or f"kernel|builtin:scan|{owner}|{count + 1}"
        if request in self.state.finished_requests:
            return decode(Result, self.journal.records[self.state.finished_requests[request] - 1].data["result"])
        for source in (job.candidate, job.champion):
            if source is not None:
                self.journal.candidates[source.sha256] = source.text
        job = replace(job, id=request)
        intent = JobStarted(
            request=request,
            kind=job.kind.value,
            experiment=experiment,
            candidate=job.candidate.sha256 if job.candidate else None,
            options=job.options,
            cause=cause,
        )
        await self._commit("job.started", "daemon", intent)
        self.started.append(request)
        await asyncio.sleep(0)
        result = self.judge(job)
        await self._commit("job.finished", "evaluator", JobFinished(request=request, result=result, experiment=experiment))
        return result

    async def promote(self, experiment: str, *, cause: str) -> GateDecided:
        if (seq := self.state.effects.get(f"gate.decided {cause}")) is None:
            decided = self._decide(experiment, cause)
            seq = (await self._commit("gate.decided", "daemon", decided)).seq
        decided = msgspec.convert(self.journal.records[seq - 1].data, GateDecided)
        if decided.promoted and not any(p.experiment == experiment for p in self.state.promotions):
            await self._commit("promotion", "daemon", self._promotion(decided))
        return decided

    def _decide(self, name: str, cause: str) -> GateDecided:
        e = self.state.experiments[name]
        facts = {
            "a/b": e.verdict is not None and e.verdict.decision == "faster",
            "robustness": e.robustness is not None and bool(e.robustness.passed),
            "reconciliation": e.stage == "reconciled",
        }
        missing = [fact for fact, ok in facts.items() if not ok]
        return GateDecided(
            experiment=name,
            sha256=e.final or "",
            gate="test gate",
            promoted=not missing,
            checks=[GateCheck(name=fact, passed=ok, detail="") for fact, ok in facts.items()],
            not_checked=[],
            reason=f"missing: {', '.join(missing)}" if missing else "all checks passed",
            cause=cause,
        )

    def _promotion(self, decided: GateDecided) -> Promoted:
        e = self.state.experiments[decided.experiment]
        assert e.verdict is not None
        assert e.evaluation is not None
        return Promoted(
            number=len(self.state.promotions) + 1,
            experiment=e.id,
            sha256=decided.sha256,
            previous=self.state.champion,
            rho=e.verdict.rho or 0.0,
            speedup=e.evaluation.speedup or 0.0,
            champion_us=e.evaluation.cand_us or 0.0,
            gate="test gate",
            not_checked=[],
        )

    async def changed(self, after: int) -> None:
        self._alive()
        async with self._condition:
            await self._condition.wait_for(lambda: self.state.seq > after or self.dead)
        self._alive()

    async def checkpoint(self, actor: str) -> None:
        await asyncio.sleep(0)
        self._alive()

    async def store(self, text: str) -> str:
        self._alive()
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.journal.candidates[sha256] = text
        return sha256

    def candidate(self, sha256: str) -> str:
        return self.journal.candidates[sha256]

    def reference_source(self) -> str:
        return "class Model: ..."

    def settings(self) -> dict[str, Any]:
        return self._settings

    async def nudge(self, text: str, *, name: str = "n1") -> None:
        await self._commit("nudge.queued", "operator", NudgeQueued(nudge=name, text=text))


def judged(job: Job) -> Result:
    """What the double finds, from words in the candidate's text."""
    assert job.candidate is not None
    text = job.candidate.text
    words = {"compile_error": Status.COMPILE_ERROR, "incorrect": Status.INCORRECT, "refused": Status.TAMPERED}
    status = next((s for word, s in words.items() if f"# {word}" in text), Status.OK)
    base = Result(job=job.id, kind=job.kind, status=status, message=f"found {status.value}", source_sha256=job.candidate.sha256)
    if status is not Status.OK:
        naive = Claim(correct=True, speedup=400.0) if job.options.get("naive") else None
        refused = Evaluation(
            correct=False, fast1=False, fast1_raw=False, speedup=None, speedup_ci=None, speedup_bound=None, score=0.0, naive=naive
        )
        return replace(base, evaluation=refused, log="\x1b[31merror\x1b[0m: " + "x" * 50_000)
    if job.kind is JobKind.AB:
        return replace(base, verdict=_verdict(job))
    if job.kind is JobKind.ROBUSTNESS:
        return replace(base, robustness=Robustness(passed=True, parts=(RobustnessPart(name="seeds", passed=True, tests=4),)))
    return replace(base, evaluation=_evaluation(speed(text), timed=job.kind is JobKind.EVALUATE))


def speed(text: str) -> float:
    """Speed-up that the double measures."""
    found = re.search(r"# speedup ([\d.]+)", text)
    return float(found[1]) if found else 1.0


def _evaluation(speedup: float, *, timed: bool) -> Evaluation:
    audit = Audit(event_us=1.0, wall_us=1.0, overhead_us=0.1, slack_us=0.1, agrees=True)
    timings = tuple(
        CaseTiming(
            case=case,
            ref_us=1000.0,
            cand_us=1000.0 / speedup,
            speedup=speedup,
            speedup_ci=Interval(low=speedup * 0.99, high=speedup * 1.01),
            speedup_mean=speedup,
            speedup_bound=speedup,
            trials=10,
            blocks=2,
            voided=0,
            audit=audit,
        )
        for case in CASES
    )
    return Evaluation(
        correct=True,
        fast1=True,
        fast1_raw=True,
        speedup=speedup if timed else None,
        speedup_ci=Interval(low=speedup * 0.99, high=speedup * 1.01) if timed else None,
        speedup_bound=speedup if timed else None,
        score=min(speedup, 10.0),
        checks=tuple(CaseCheck(case=case, correct=True, seeds=2, max_abs_error=1e-6) for case in CASES),
        timings=timings if timed else (),
    )


def _verdict(job: Job) -> Verdict:
    assert job.candidate is not None
    rho = (speed(job.champion.text) if job.champion else 1.0) / speed(job.candidate.text)
    ci = Interval(low=rho * 0.998, high=rho * 1.002)
    decision = Decision.FASTER if ci.high < 1 - FLOOR else Decision.SLOWER if ci.low > 1 + FLOOR else Decision.UNRESOLVED
    cases = tuple(
        CaseRatio(case=case, rho=rho, rho_ci=ci, rho_wall=rho, rho_wall_ci=ci, slot_bias=1.0, floor=FLOOR, pairs=20) for case in CASES
    )
    return Verdict(
        decision=decision,
        reason=f"rho {rho:.3f}",
        rho=rho,
        rho_ci=ci,
        rho_wall=rho,
        rho_wall_ci=ci,
        floor=FLOOR,
        cases=cases,
        champion_sha256=job.champion.sha256 if job.champion else None,
        candidate_sha256=job.candidate.sha256,
        outputs_verified=4,
    )


MARKS = {
    "gated_mean_fused": "# speedup 2.2",
    "gated_mean_chunked": "# incorrect",
    "gated_mean_intrinsics": "# compile_error",
    "gated_mean_aligned": "# speedup 7.01",
    "self.plans": "# refused",
}
"""What the double finds for the demo's sources, by a word in them."""


def demo_judge(job: Job) -> Result:
    """`judged` for the demo's sources."""
    return judged(replace(job, candidate=_marked(job.candidate), champion=_marked(job.champion)))


def _marked(source: Source | None) -> Source | None:
    if source is None:
        return None
    return replace(source, text=next((mark for word, mark in MARKS.items() if word in source.text), "# speedup 7.0"))


def essence(state: RunState) -> Any:
    """What a run came to, without the numbers of records."""
    plain = msgspec.to_builtins(state)
    for name in ("seq", "records", "effects", "results", "finished_requests", "world_model_history", "voided", "agents", "alerts"):
        del plain[name]
    agents = {a.id: (a.state, a.turns, a.context, a.last_words) for a in state.agents.values()}
    return _without_seq(plain), agents, sorted(state.effects), sorted(state.results), sorted(state.finished_requests)


def _without_seq(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_seq(v) for k, v in sorted(value.items()) if k not in ("seq", "opened_seq", "last_seq", "started_seq")}
    if isinstance(value, list):
        return [_without_seq(v) for v in value]
    return value
