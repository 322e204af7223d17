"""Jobs through a directory: real workers, killed, doubled, told to end; cut files; a disk that is full; the daemon's side."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from daemon.executors.base import JudgeLost
from daemon.executors.spool import SpoolExecutor
from evaluator.errors import EnvironmentFault, UsageError
from evaluator.records import Job, JobKind, Progress, Result, Status
from evaluator.spool import places
from evaluator.spool.places import Lost, Spool, name_of
from evaluator.spool.worker import Worker

ROOT = Path(__file__).parents[2]
JUDGE = """
import json, sys, time
from pathlib import Path
job = json.loads(Path(sys.argv[1]).read_text())
options = job["options"]
print(json.dumps({"progress": {"job": job["id"], "step": "timing", "detail": job["device"], "done": 1, "total": 2}}), flush=True)
time.sleep(options.get("timeout_s", 0))
if options.get("pairs") == 2:
    print("evaluator: no such thing\\n  mend: ask for another", file=sys.stderr)
    sys.exit(2)
if options.get("pairs") == 3:
    import os
    os.kill(os.getpid(), 9)
result = {"job": "another" if options.get("pairs") == 4 else job["id"], "kind": job["kind"], "status": "ok"}
Path(sys.argv[3]).write_text(json.dumps(result))
"""


def job(number=1, **options):
    return Job(id=f"kernel|builtin:scan|spool|{number}", kind=JobKind.CHECK, problem="builtin:scan", options=options)


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool")


@pytest.fixture
def judge(tmp_path):
    path = tmp_path / "judge.py"
    path.write_text(textwrap.dedent(JUDGE))
    return (sys.executable, str(path))


def worker(spool, judge, name="one", **options):
    said = []
    return Worker(spool, "cuda:3", said.append, judge=judge, name=name, **options), said


def results(spool):
    return {path.stem: json.loads(path.read_text()) for path in (spool.root / "results").glob("*.json")}


def test_jobs_come_out_in_their_order_and_once(spool, judge):
    names = [spool.put(job(n)) for n in (1, 2, 1)]
    assert names[0] == names[2] == name_of("kernel|builtin:scan|spool|1")
    one, said = worker(spool, judge)
    assert one.work(once=True) == 2
    assert set(results(spool)) == set(names)
    assert [line for line in said if line.startswith("check")] == ["check kernel|builtin:scan|spool|1", "check kernel|builtin:scan|spool|2"]
    assert list((spool.root / "claimed").iterdir()) == list((spool.root / "queue").iterdir()) == []
    assert spool.put(job(1)) == names[0], "its result is there already"
    assert one.work(once=True) == 0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (2, "no such thing"),
        (3, "the judge ended with exit status -9 and without a result"),
        (4, "the judge answered another, not this job"),
    ],
)
def test_a_judge_that_gives_no_result_is_answered_for(spool, judge, pairs, message):
    name = spool.put(job(pairs=pairs))
    worker(spool, judge)[0].work(once=True)
    result = results(spool)[name]
    assert (result["status"], result["message"], result["evaluation"]) == ("evaluator_error", message, None)


def test_a_file_cut_in_half_is_put_aside_with_the_reason(spool, judge):
    name = spool.put(job(1))
    path = spool.root / "queue" / f"{name}.json"
    path.write_text(path.read_text()[:40])
    good = spool.put(job(2))
    assert worker(spool, judge)[0].work(once=True) == 1
    assert set(results(spool)) == {good}
    assert spool.state(name) == "refused"
    assert "is not JSON" in spool.refusal(name)


def test_a_claim_whose_heart_stopped_is_taken_up_again(spool, judge):
    name = spool.put(job())
    dead = spool.claim("dead")
    assert spool.claim("other") is None
    os.utime(dead.path, (time.time() - 100, time.time() - 100))
    one, said = worker(spool, judge, lease_s=60)
    assert one.work(once=True) == 1
    assert f"taken up again: {name[:12]}" in said
    with pytest.raises(Lost):
        spool.beat(dead)
    with pytest.raises(Lost):
        spool.finish(dead, Result(job=dead.job.id, kind=JobKind.CHECK, status=Status.OK))
    assert results(spool)[name]["status"] == "ok"


def test_two_workers_never_have_the_same_job(spool, judge):
    names = {spool.put(job(n)) for n in range(12)}
    pair = [worker(spool, judge, name=n) for n in ("one", "two")]
    threads = [threading.Thread(target=one.work, kwargs={"once": True}) for one, _ in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    started = [line for _, said in pair for line in said if line.startswith("check")]
    assert len(started) == len(set(started)) == 12
    assert set(results(spool)) == names


def test_a_full_disk_is_waited_for_and_the_result_kept(spool, judge, monkeypatch):
    name = spool.put(job())
    full = [2]
    real = places.write_result

    def write(path, result):
        full[0] -= 1
        if full[0] >= 0:
            raise EnvironmentFault(f"the result cannot be written to {path}: {os.strerror(errno.ENOSPC)}")
        real(path, result)

    monkeypatch.setattr(places, "write_result", write)
    one, said = worker(spool, judge, lease_s=0.6)
    assert one.work(once=True) == 1
    assert sum("No space left" in line for line in said) == 2
    assert results(spool)[name]["status"] == "ok"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match=r"the spool .* cannot be used") as caught:
        Spool(tmp_path / "file")
    assert caught.value.code == 3


@contextlib.contextmanager
def process(spool, *options):
    command = [sys.executable, "-m", "evaluator", "worker", "--spool", str(spool.root), *options]
    started = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def test_the_command_answers_a_real_job_and_ends_when_told(spool):
    """The source defines no entry: the real judge says so at once."""
    name = spool.put(Job(id="a", kind=JobKind.CHECK, problem="builtin:nothing"))
    with process(spool) as running:
        deadline = time.monotonic() + 60
        while spool.state(name) != "results":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert spool.living(60)
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0
    result = results(spool)[name]
    assert (result["status"], "no problem 'builtin:nothing'" in result["message"]) == ("evaluator_error", True)
    assert spool.living(60) == []


def test_told_to_end_it_gives_the_job_at_hand_back(spool, judge):
    name = spool.put(job(timeout_s=60))
    one, _ = worker(spool, judge)
    running = threading.Thread(target=one.work)
    running.start()
    deadline = time.monotonic() + 20
    while not spool.progress_text(name):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    one.end()
    running.join(20)
    assert not running.is_alive()
    assert spool.state(name) == "queue"


async def asked(spool, judge, *jobs, **options):
    """What the daemon's executor gets for jobs that one worker answers, and the steps it heard."""
    one, _ = worker(spool, judge)
    running = threading.Thread(target=one.work)
    running.start()
    heard: list[Progress] = []
    executor = SpoolExecutor(device="cuda:0", directory=spool.root, **options)

    async def started():
        heard.append(Progress(job="", step="started"))

    try:
        return [await asyncio.wait_for(executor.run(each, started=started, report=heard.append), 60) for each in jobs], heard
    finally:
        one.end()
        running.join(20)


async def test_the_daemon_gets_the_result_and_hears_the_progress(spool, judge):
    (result,), heard = await asked(spool, judge, job(timeout_s=1.5))
    assert result.status is Status.OK
    assert Progress(job=result.job, step="timing", detail="cuda:3", done=1, total=2) in heard
    assert heard[0].step == "started"
    assert not list((spool.root / "results").iterdir())


async def test_the_daemon_says_that_nobody_watches_and_calls_off_what_it_no_longer_wants(spool):
    heard: list[Progress] = []

    async def started():
        pass

    executor = SpoolExecutor(device="cuda:0", directory=spool.root, lease_s=0.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(executor.run(job(), started=started, report=heard.append), 1.2)
    assert {step.detail for step in heard} == {f"no worker watches {spool.root}"}
    assert spool.state(name_of(job().id)) is None


async def test_what_is_cut_or_of_another_job_is_lost_and_said(spool, judge):
    place = spool.root / "results" / f"{name_of(job().id)}.json"
    place.write_text('{"job": "b", "kind": "check", "status": "ok"}')
    with pytest.raises(JudgeLost, match=r"the worker answered b \(check\), not this job"):
        await asked(spool, judge, job())
    place.write_text('{"job": "b", "ki')
    with pytest.raises(JudgeLost, match="cannot be read"):
        await asked(spool, judge, job())


@pytest.mark.parametrize("name", ["a@b.json", "job.json", f"{'0' * 39}g.json"])
def test_a_file_of_another_name_is_put_aside(spool, name):
    (spool.root / "queue" / name).write_text("{}")
    assert spool.claim("one") is None
    assert "its name is not that of a job" in (spool.root / "refused" / f"{name.removesuffix('.json')}.why").read_text()
    assert list((spool.root / "claimed").iterdir()) == []


def test_a_pipe_in_the_queue_holds_nobody_up(spool):
    os.mkfifo(spool.root / "queue" / f"{'a' * 40}.json")
    assert spool.claim("one") is None
    assert spool.refusal("a" * 40) == "it is not a regular file"


def test_a_claim_that_another_takes_back_at_once_is_left_to_it(spool, monkeypatch):
    """Between the rename and the reading, a worker that looked before takes the old claim for dead."""
    spool.put(job())

    def taken_back(path):
        path.rename(spool.root / "queue" / f"{path.name.partition('@')[0]}.json")
        raise UsageError("no such file", "")

    monkeypatch.setattr("evaluator.spool.places.read_job", taken_back)
    assert spool.claim("one") is None
    assert len(list((spool.root / "queue").iterdir())) == 1
    assert list((spool.root / "refused").iterdir()) == []


def test_a_claim_is_never_older_than_its_workers_last_beat(spool):
    name = spool.put(job())
    os.utime(spool.root / "queue" / f"{name}.json", (0, 0))
    claim = spool.claim("one")
    assert spool.now() - claim.path.stat().st_mtime < 60
    assert spool.recover(60) == []
