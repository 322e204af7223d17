"""The run's port over a real journal; the executor is in this process, so that tests decide when a job ends."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
import test_daemon_gate as gate_records
from daemon_waiting import eventually

from daemon import gate
from daemon.errors import BadRequest
from daemon.gauges import Gauges
from daemon.kind_index import KindIndex
from daemon.queue import EvaluationQueue
from daemon.requests import Requests
from daemon.run_port import JournaledPort
from daemon.turns import TurnGate
from daemon.writer import Writer
from evaluator.records import Job, JobKind, Result, Source, Status
from problems import registry
from state.events import AgentFinished, RunCreated
from state.files import RunFiles
from state.journal import Journal
from state.model import RunState

TEXT = "# a candidate\n"
SHA = hashlib.sha256(TEXT.encode()).hexdigest()
CREATED = RunCreated(
    title="t", problem="builtin:scan", problem_sha256=gate_records.PROBLEM, problem_title="t", cases=["small"], device="cpu", model="m",
    profile="open", gate="g",
)  # fmt: skip


class Executor:
    """Ends a job when it is told to."""

    device = "cpu"

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def run(self, job, *, started, report):
        await started()
        self.jobs.append(job)
        await self.may_end.wait()
        return Result(job=job.id, kind=job.kind, status=Status.OK, source_sha256=job.candidate.sha256 if job.candidate else None)


class Site:
    def __init__(self, directory: Path) -> None:
        self.files = RunFiles(directory, "r")
        self.files.create()
        self.executor = Executor()
        self.turns = TurnGate()
        requests, kinds = Requests(), KindIndex()
        self.writer = Writer(Journal.open(self.files.journal, run="r"), state=RunState(), observers=[requests.observe, kinds.observe])
        self.port = JournaledPort(
            files=self.files, problem=registry.load("builtin:scan"), writer=self.writer, requests=requests, kinds=kinds,
            queue=EvaluationQueue({"cpu": self.executor}, gauges=Gauges()), turns=self.turns,
        )  # fmt: skip

    def evaluate(self, cause: str, *, job: Job | None = None):
        return self.port.evaluate(job or asked(), owner="E1", experiment=None, purpose="test", cause=cause)

    async def kinds(self) -> list[str]:
        return [record.kind for record in await self.port.records()]


def asked(**fields) -> Job:
    return Job(id="", kind=JobKind.EVALUATE, problem="", candidate=Source(sha256=SHA, text=TEXT), **fields)


@pytest.fixture
async def site(tmp_path):
    site = Site(tmp_path)
    await site.writer.commit([("run.created", "operator", CREATED)])
    yield site
    await site.writer.finish()
    site.writer.journal.close()


async def test_one_cause_is_one_job_at_once_and_later(site):
    site.executor.may_end.clear()
    together = [asyncio.create_task(site.evaluate("w/1")) for _ in range(3)]
    await eventually(lambda: site.executor.jobs)
    site.executor.may_end.set()
    results = [await task for task in together]
    results.append(await site.evaluate("w/1"))
    assert {result.job for result in results} == {"kernel|builtin:scan|E1|1"}
    assert len(site.executor.jobs) == 1
    assert await site.kinds() == ["run.created", "job.started", "job.finished"]


async def test_a_job_is_about_this_run_whatever_the_agent_wrote(site):
    await site.evaluate("w/1", job=asked(problem_sha256="x", device="cuda:0", profile="seed"))
    (job,) = site.executor.jobs
    assert (job.problem, job.problem_sha256, job.device, job.profile) == ("builtin:scan", gate_records.PROBLEM, "cpu", "open")
    assert site.port.candidate(SHA) == TEXT


async def test_a_text_under_a_wrong_hash_is_not_judged(site):
    with pytest.raises(BadRequest, match="does not have the hash"):
        await site.evaluate("w/1", job=Job(id="", kind=JobKind.CHECK, problem="", candidate=Source(sha256="0" * 64, text=TEXT)))
    assert await site.kinds() == ["run.created"]


async def test_the_job_goes_on_until_its_last_waiter_gives_up(site):
    site.executor.may_end.clear()
    first, second = (asyncio.create_task(site.evaluate("w/1")) for _ in range(2))
    await eventually(lambda: site.executor.jobs)
    first.cancel()
    await asyncio.wait({first})
    assert site.turns.acting == ["kernel|builtin:scan|E1|1"]
    second.cancel()
    await asyncio.wait({second})
    assert (first.cancelled(), second.cancelled(), site.turns.acting) == (True, True, [])
    site.executor.may_end.set()
    assert (await site.evaluate("w/1")).job == "kernel|builtin:scan|E1|1"
    assert await site.kinds() == ["run.created", "job.started", "job.voided", "job.started", "job.finished"]


async def test_an_ab_gets_the_floor_of_the_run(site):
    await site.writer.commit([(kind, "evaluator", data) for kind, data in gate_records.floor(0.02)])
    await site.evaluate("w/1", job=Job(id="", kind=JobKind.AB, problem="", candidate=Source(sha256=SHA, text=TEXT)))
    assert site.executor.jobs[0].options == {"floor": {"geomean": 0.02, "cases": {}}}


async def test_a_promotion_is_asked_for_once_per_cause(site):
    await site.writer.commit([(kind, "worker:E1", data) for kind, data in gate_records.whole()])
    first = await site.port.promote("E1", cause="o/1")
    assert first.promoted
    assert await site.port.promote("E1", cause="o/1") == first
    assert (await site.kinds())[-2:] == ["gate.decided", "promotion"]
    again = await site.port.promote("E1", cause="o/2")
    assert (again.promoted, "champion already" in again.reason) == (False, True)
    assert len(site.port.state.promotions) == 1


async def test_a_promotion_cut_off_after_its_gate_record_is_completed(site):
    await site.writer.commit([(kind, "worker:E1", data) for kind, data in gate_records.whole()])
    decided, promoted = gate.decide(site.port.state, await site.port.records(kinds=gate.KINDS), experiment="E1", cause="o/1")
    await site.writer.commit([("gate.decided", "daemon", decided)])
    await site.port.settle_promotions()
    await site.port.settle_promotions()
    assert [(p.number, p.sha256, p.champion_us) for p in site.port.state.promotions] == [(1, promoted.sha256, promoted.champion_us)]
    assert await site.port.promote("E1", cause="o/1") == decided


async def test_a_finished_agent_is_out_of_its_turn(site):
    await site.port.checkpoint("worker:E1")
    assert site.turns.acting == ["worker:E1"]
    await site.port.record("agent.finished", "worker:E1", AgentFinished(agent="worker:E1", outcome="done"))
    assert site.turns.acting == []


async def test_records_are_the_asked_kinds_after_a_seq(site):
    await site.evaluate("w/1")
    assert [r.seq for r in await site.port.records(after=1)] == [2, 3]
    assert [r.seq for r in await site.port.records(kinds=frozenset({"job.finished", "run.created"}))] == [1, 3]
    with pytest.raises(KeyError):
        await site.port.read(4)
