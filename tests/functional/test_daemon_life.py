"""The daemon as a process: start, control, kill, restart. The judge is a process that measures nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_waiting import eventually

from daemon import launch, processes
from daemon.client import Client, NotReachable
from daemon.errors import AlreadyRunning, EnvironmentFault
from daemon.places import Places, find_socket
from state.journal import read_records
from state.reducer import fold
from state.store import Store
from state.verification import verify

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
JUDGE = shlex.join([sys.executable, str(HERE / "judge_double.py")])
PROBLEM = "builtin:scan"


class Site:
    """One state directory and the daemons started on it."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.judge = directory / "judge"
        self.judge.mkdir()
        self.pids: list[int] = []

    @property
    def socket(self) -> Path:
        return find_socket(self.state)

    def command(self, *more: str, program: str = "daemon_host.py") -> list[str]:
        start = [sys.executable, str(HERE / program)] if program.endswith(".py") else [sys.executable, "-m", program]
        return [*start, "--state-dir", str(self.state), "--judge-command", JUDGE, *more]

    def start(self, *more: str) -> launch.Launched:
        launched = launch.spawn(self.command(*more), log=Places(self.state).log, timeout_s=40)
        self.pids.append(launched.pid)
        return launched

    def refused(self, *more: str, program: str = "daemon") -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*more, program=program), cwd=ROOT, capture_output=True, text=True, timeout=40)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        launch.stop(pid)

    @property
    def starts(self) -> list[list[str]]:
        log = self.judge / "starts.log"
        return [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []

    def plan(self, *steps: str) -> None:
        (self.judge / "plan").write_text("\n".join(steps))

    def journal(self, run: str) -> Path:
        return self.state / "runs" / run / "attempts.jsonl"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{HERE}")
    monkeypatch.setenv("JUDGE_DOUBLE_DIR", str(site.judge))
    monkeypatch.setenv("RATCHET_LEASE_DIR", str(tmp_path / "leases"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    yield site
    for pid in site.pids:
        launch.stop(pid)


async def ended(client: Client, run: str, *, status: str = "finished"):
    async def there():
        snapshot = await client.snapshot(run)
        return snapshot if snapshot.state.status == status else None

    return await eventually(there)


async def test_start_run_pause_resume_and_stop_of_a_real_daemon(site, monkeypatch):
    monkeypatch.setenv("JUDGE_DOUBLE_SLEEP", "0.05")
    launched = site.start()
    assert stat.S_IMODE(launched.socket.stat().st_mode) == 0o600
    assert launched.socket == site.socket
    async with Client(launched.socket) as client:
        health = await client.health()
        assert (health.pid, health.state_dir) == (launched.pid, str(site.state))
        run = (await client.start(PROBLEM)).run
        await client.pause(run)
        paused = await ended(client, run, status="paused")
        assert paused.state.in_flight == []
        await client.resume(run)
        finished = await ended(client, run)
    assert [p.experiment for p in finished.state.promotions] == ["E1", "E3"]
    assert launch.stop(launched.pid)
    assert not launched.socket.exists()
    assert fold(read_records(site.journal(run))) == finished.state
    log = [json.loads(line) for line in launched.log.read_text().splitlines()]
    assert {"ready", "run created", "stopping"} <= {entry["event"] for entry in log}


async def test_a_second_daemon_is_refused_on_the_state_directory_and_on_the_socket(site, tmp_path):
    launched = site.start()
    same_state = site.refused("--socket", str(tmp_path / "other.sock"))
    assert same_state.returncode == 3
    said = json.loads(same_state.stdout)["error"]
    assert said["message"] == f"another daemon (pid {launched.pid}) holds the state directory {site.state}"
    assert same_state.stderr.strip().splitlines() == [f"ratchet daemon: {said['message']} ({said['hint']})"]
    site.state = tmp_path / "second"
    same_socket = site.refused("--socket", str(launched.socket))
    assert same_socket.returncode == 3
    assert f"another daemon (pid {launched.pid}) holds the socket {launched.socket}" in same_socket.stdout
    with pytest.raises(AlreadyRunning, match="holds the socket"):
        launch.launch(site.state, socket=launched.socket, judge_command=JUDGE)
    async with Client(launched.socket) as client:
        assert (await client.health()).pid == launched.pid


def test_what_a_daemon_cannot_work_with_is_one_line_and_exit_3(site, tmp_path):
    long = site.refused("--socket", str(tmp_path / ("s" * 120)))
    assert (long.returncode, len(long.stderr.strip().splitlines())) == (3, 1)
    assert "107 is the most" in long.stderr
    site.state = tmp_path / "newer"
    site.state.mkdir()
    (site.state / "format").write_text("99")
    assert (site.refused().returncode, "newer version (99" in site.refused().stderr) == (3, True)
    site.state = Path("/proc/nowhere")
    assert (site.refused().returncode, "cannot be written" in site.refused().stderr) == (3, True)
    assert site.refused("--colour").returncode == 2
    with pytest.raises(EnvironmentFault, match="newer version"):
        launch.launch(tmp_path / "newer")


async def test_nobody_there_is_said_with_the_mend(tmp_path):
    async with Client(tmp_path / "none.sock") as client:
        with pytest.raises(NotReachable) as caught:
            await client.health()
    assert (caught.value.code, "ratchet daemon" in caught.value.hint) == (4, True)


async def test_once_ends_with_the_last_run_and_the_stream_has_it_all(site):
    launched = site.start("--once")
    seen = []
    async with Client(launched.socket) as client:
        run = (await client.start(PROBLEM)).run
        snapshot = await client.snapshot(run)
        async for record in client.events(snapshot):
            seen.append(record.seq)
            if record.data.get("state") == "finished":
                break
    assert launch.stop(launched.pid)
    assert seen == list(range(snapshot.seq + 1, read_last(site.journal(run)) + 1))


async def test_a_killed_daemon_leaves_nothing_running_and_the_next_one_repeats_what_was_cut_off(site):
    site.plan("ok", "ok", "ok", "fork")
    first = site.start()
    async with Client(first.socket) as client:
        run = (await client.start(PROBLEM)).run
        await eventually(lambda: len(site.starts) == 4)
        group = int(site.starts[3][3])
        await eventually(lambda: len(processes.members(group)) == 2)
        site.kill(first.pid)
        assert len(processes.members(group)) == 2, "the double does not die with its parent"
        second = site.start()
        assert processes.members(group) == []
        assert second.socket == first.socket, "the stale socket was taken over"
        finished = await ended(client, run)
    state = finished.state
    assert (state.resumed, state.voided, len(state.promotions)) == (1, 1, 2)
    requests = [request for request, *_ in site.starts]
    assert requests[3] == requests[4] == "kernel|builtin:scan|E1|1"
    assert Counter(requests).most_common(2)[1][1] == 1, "nothing else ran twice"
    voided = [r.data["request"] for r in read_records(site.journal(run)) if r.kind == "job.voided"]
    assert voided == ["kernel|builtin:scan|E1|1"]


@pytest.mark.parametrize("seed", range(3))
async def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(site, seed, monkeypatch):
    monkeypatch.setenv("JUDGE_DOUBLE_SLEEP", "0.25")
    moments = random.Random(seed)
    run, acknowledged = None, []
    for _ in range(3):
        launched = site.start()
        async with Client(launched.socket) as client:
            run = run or (await client.start(PROBLEM, key="the-run")).run
            acknowledged.append(await client.nudge(run, f"note {len(acknowledged)}"))
            await asyncio.sleep(moments.uniform(0.0, 0.9))
        site.kill(launched.pid)
    launched = site.start()
    async with Client(launched.socket) as client:
        state = (await ended(client, run)).state
        assert (await client.start(PROBLEM, key="the-run")).run == run
    launch.stop(launched.pid)
    records = list(read_records(site.journal(run)))
    results = Counter(r.data["request"] for r in records if r.kind == "job.finished")
    assert max(results.values()) == 1
    assert len(results) == 12
    assert {records[seq - 1].data["text"] for seq in acknowledged} == {"note 0", "note 1", "note 2"}
    assert fold(records) == state
    assert (len(state.promotions), state.alerts, state.in_flight) == (2, [], [])
    assert verify(site.journal(run)).records == len(records)
    assert not any(processes.members(int(group)) for _, _, _, group in site.starts)


async def test_a_paused_run_stays_paused_over_a_restart_and_a_draining_one_is(site):
    site.plan("hang")
    first = site.start()
    async with Client(first.socket) as client:
        run = (await client.start(PROBLEM)).run
        await eventually(lambda: site.starts)
        await client.pause(run)
        assert (await client.snapshot(run)).state.status == "draining"
        site.kill(first.pid)
        site.start()
        paused = await client.snapshot(run)
        assert (paused.state.status, paused.state.in_flight) == ("paused", [])
        await asyncio.sleep(0.2)
        assert len(site.starts) == 1
        await client.resume(run)
        await ended(client, run)


async def test_a_damaged_journal_keeps_its_run_out_and_nothing_else(site):
    first = site.start()
    async with Client(first.socket) as client:
        damaged = (await client.start(PROBLEM)).run
        await ended(client, damaged)
        launch.stop(first.pid)
        text = site.journal(damaged).read_bytes()
        site.journal(damaged).write_bytes(text.replace(b'"text":"turn 1"', b'"text":"turn 9"', 1))
        (site.state / "projection.sqlite").write_bytes(b"not a database at all" * 100)
        site.start()
        listed = await client.runs()
        assert ([d.run for d in listed.damaged], listed.runs) == ([damaged], [])
        assert "hash mismatch" in listed.damaged[0].message
        await ended(client, (await client.start(PROBLEM)).run)


async def test_the_projection_of_a_killed_daemon_is_caught_up(site):
    first = site.start()
    async with Client(first.socket) as client:
        run = (await client.start(PROBLEM)).run
        await ended(client, run)
        site.kill(first.pid)
        (site.state / "projection.sqlite").unlink()
        second = site.start()
        (row,) = (await client.runs()).runs
        assert (row.run, row.status, row.promotions) == (run, "finished", 2)
    launch.stop(second.pid)
    store = await Store.open(site.state / "projection.sqlite")
    rows = await store.jobs(run)
    await store.close()
    assert (len(rows), {job.status for job in rows}) == (12, {"ok"})


def read_last(journal: Path) -> int:
    return max(record.seq for record in read_records(journal))
