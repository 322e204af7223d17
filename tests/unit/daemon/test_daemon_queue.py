"""The queue and the local executor, over a real judge process and real files."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from daemon_waiting import eventually

from daemon import lease, processes
from daemon.errors import BadRequest, EnvironmentFault
from daemon.executors.local import WALL_LIMITS_S, LocalExecutor
from daemon.gauges import Gauges
from daemon.queue import EvaluationQueue, Ticket
from evaluator.records import Job, JobKind, Result, Source, Status


class Bench:
    """A queue over one local executor, and what its tickets were told."""

    def __init__(self, jobs: Path, judge, *, limit_s: float | None = None) -> None:
        jobs.mkdir(exist_ok=True)
        limits = dict.fromkeys(WALL_LIMITS_S, limit_s) if limit_s else WALL_LIMITS_S
        self.jobs = jobs
        self.gauges = Gauges()
        executor = LocalExecutor(device="cpu", jobs=jobs, command=judge.command, limits_s=limits)
        self.queue = EvaluationQueue({"cpu": executor}, gauges=self.gauges)
        self.told: list[str] = []
        self.started = asyncio.Event()

    async def run(self, name: str = "a", *, text: str = "# double: speed=2\n") -> Result:
        job = Job(id=name, kind=JobKind.EVALUATE, problem="builtin:scan", candidate=Source(sha256="0" * 64, text=text))

        async def started() -> None:
            self.told.append(f"started {name}")
            self.started.set()

        async def voided(why: str) -> None:
            self.told.append(f"voided {name}: {why}")

        return await self.queue.run(Ticket(run="r", job=job, started=started, voided=voided))


@pytest.fixture
def bench(tmp_path: Path, judge) -> Bench:
    return Bench(tmp_path / "jobs", judge)


async def test_a_job_is_started_once_and_its_files_are_removed(bench, judge):
    result = await bench.run()
    assert (result.status, result.job, result.evaluation.speedup) == (Status.OK, "a", 2.0)
    assert bench.told == ["started a"]
    assert list(bench.jobs.iterdir()) == []
    ((_, _, pid, group),) = judge.starts
    assert pid == group, "the judge leads a group of its own"
    assert bench.gauges.read("r") == {"queue": []}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("die", "the judge was killed by SIGKILL without a result"),
        ("silent", "the judge ended with exit status 1 without a result"),
        ("garbage", "the judge's result cannot be read: Input data was truncated"),
        ("other", "the judge answered another (evaluate), not this job"),
        ("error", "unquiet machine"),
    ],
)
async def test_a_fault_of_the_judge_is_voided_and_tried_again(bench, judge, how, why):
    judge.plan(how, how, "ok")
    result = await bench.run()
    assert result.status is Status.OK
    assert bench.told == ["started a", f"voided a: {why}", "started a", f"voided a: {why}", "started a"]


async def test_after_two_retries_the_fault_is_the_answer(bench, judge):
    judge.plan("silent", "silent", "silent", "ok")
    result = await bench.run()
    assert result.status is Status.EVALUATOR_ERROR
    assert result.log == "something [31mred[0m went wrong\n" * 3, "control characters are gone"
    assert [line.split()[0] for line in bench.told] == ["started", "voided", "started", "voided", "started"]
    assert len(judge.starts) == 3


@pytest.mark.parametrize(
    ("how", "error", "message", "hint"),
    [
        ("environment", EnvironmentFault, "bubblewrap is missing", "install it: apt-get install bubblewrap"),
        ("usage", BadRequest, "unknown option `pears`", "known: pairs, seeds"),
    ],
)
async def test_what_a_judge_refuses_in_words_is_not_tried_again(bench, judge, how, error, message, hint):
    judge.plan(how)
    with pytest.raises(error) as caught:
        await bench.run()
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert len(judge.starts) == 1


async def test_an_unknown_device_is_refused_before_anything(bench):
    job = Job(id="a", kind=JobKind.CHECK, problem="p", device="cuda:7")
    with pytest.raises(EnvironmentFault, match="no device cuda:7"):
        await bench.queue.run(Ticket(run="r", job=job, started=None, voided=None))


async def test_pipes_are_drained_whatever_comes(bench, judge):
    judge.plan("chatty")
    assert (await bench.run()).status is Status.OK


async def test_jobs_of_one_device_never_overlap_and_keep_their_order(bench, judge):
    names = [f"job{n}" for n in range(4)]
    await asyncio.gather(*(bench.run(name, text="# double: sleep=0.1\n") for name in names))
    assert bench.told == [f"started {name}" for name in names]
    assert [start[0] for start in judge.starts] == names


async def test_a_cancelled_job_takes_its_whole_group_with_it(bench, judge):
    judge.plan("fork")
    task = asyncio.create_task(bench.run())
    group = int((await started(judge, 1))[0][3])
    await eventually(lambda: len(processes.members(group)) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes.members(group) == []
    assert list(bench.jobs.iterdir()) == []
    assert (await bench.run("b")).status is Status.OK, "the device is free again"


async def test_a_job_waiting_for_its_device_can_be_cancelled(bench, judge):
    judge.plan("hang")
    running = asyncio.create_task(bench.run("a"))
    await started(judge, 1)
    waiting = asyncio.create_task(bench.run("b"))
    await asyncio.sleep(0)
    assert [entry["state"] for entry in bench.gauges.read("r")["queue"]] == ["running", "waiting"]
    waiting.cancel()
    running.cancel()
    await asyncio.wait({running, waiting})
    assert bench.told == ["started a"]
    assert bench.gauges.read("r")["queue"] == []


async def test_a_judge_that_does_not_answer_in_time_is_given_up(tmp_path, judge):
    bench = Bench(tmp_path / "jobs", judge, limit_s=1.0)
    judge.plan("hang", "hang", "hang")
    result = await bench.run()
    assert (result.status, result.message) == (Status.EVALUATOR_ERROR, "the judge did not answer within 1 s and was stopped")
    assert all(processes.members(int(group)) == [] for _, _, _, group in judge.starts)


async def test_a_lease_held_elsewhere_is_waited_for(bench, judge, tmp_path):
    async with foreign_lease() as release:
        task = asyncio.create_task(bench.run())
        await eventually(lambda: bench.gauges.read("r").get("job", {}).get("step") == "waiting")
        assert bench.told == []
        release()
        assert (await task).status is Status.OK


async def test_the_judge_holds_the_lease_itself(bench, judge):
    judge.plan("hang")
    task = asyncio.create_task(bench.run())
    await started(judge, 1)
    descriptor = os.open(lease.lease_path("cpu"), os.O_RDWR)
    pid = int(judge.starts[0][2])
    held = {os.readlink(link.path) for link in os.scandir(f"/proc/{pid}/fd")}
    assert str(lease.lease_path("cpu")) in held
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    task.cancel()
    await asyncio.wait({task})
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


async def test_progress_becomes_a_gauge(bench, judge):
    seen = []

    async def watch() -> None:
        while True:
            await bench.gauges.changes.wait(bench.gauges.changes.seq)
            seen.append(bench.gauges.read("r").get("job"))

    watching = asyncio.create_task(watch())
    await bench.run(text="# double: sleep=0.2\n")
    watching.cancel()
    assert {"job": "a", "kind": "evaluate", "step": "timing", "detail": "block 1", "done": 1, "total": 2} in seen
    assert "job" not in bench.gauges.read("r")


async def started(judge, count: int) -> list[list[str]]:
    """Wait until the judge was started `count` times."""
    await eventually(lambda: len(judge.starts) >= count)
    return judge.starts


@contextlib.asynccontextmanager
async def foreign_lease() -> AsyncIterator:
    path = lease.lease_path("cpu")
    path.parent.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield lambda: os.close(descriptor)
