"""The API over a real Unix socket, with a real supervisor, journal and judge process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import stand_in
from daemon_waiting import eventually

from daemon.api import events as events_api
from daemon.api.application import Identity, application
from daemon.client import Answered, Client, StreamReset
from daemon.executors.local import LocalExecutor
from daemon.gauges import Gauges
from daemon.listener import listening
from daemon.preparation import Qualifications
from daemon.queue import EvaluationQueue
from daemon.run import Surroundings
from daemon.server import serving
from daemon.supervisor import Supervisor
from state.events import Note
from state.store import Store

PROBLEM = "builtin:scan"
SSE = {"accept": "text/event-stream"}


class Host:
    """One daemon's inside, listening on a socket."""

    def __init__(self, supervisor: Supervisor, socket: Path) -> None:
        self.supervisor = supervisor
        self.socket = socket
        self.shut_down = asyncio.Event()

    def http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=str(self.socket)), base_url="http://d", timeout=20)


@contextlib.asynccontextmanager
async def hosting(root: Path, judge, *, search=stand_in.search, socket: Path) -> AsyncIterator[Host]:
    (root / "jobs").mkdir(parents=True, exist_ok=True)
    gauges = Gauges()
    executor = LocalExecutor(device="cpu", jobs=root / "jobs", command=judge.command)
    around = Surroundings(
        queue=EvaluationQueue({"cpu": executor}, gauges=gauges), gauges=gauges, qualifications=Qualifications(root / "q"), search=search
    )
    store = await Store.open(root / "projection.sqlite")
    supervisor = Supervisor(root, store=store, around=around)
    host = Host(supervisor, socket)
    identity = Identity(pid=os.getpid(), version="0", state_dir=str(root), socket=str(socket), started_ts="")
    app = application(supervisor, identity=identity, shut_down=host.shut_down.set)
    await supervisor.start()
    with listening(socket) as bound:
        async with serving(app, bound):
            supervisor.go_on()
            yield host
            await supervisor.close()
    supervisor.release()
    await store.close()


@pytest.fixture
async def host(tmp_path, judge):
    async with hosting(tmp_path / "state", judge, socket=tmp_path / "s" / "r.sock") as host:
        yield host


@pytest.fixture
async def quiet(tmp_path, judge):
    """A host whose searches do nothing until they are stopped."""

    async def search(port) -> None:
        await asyncio.Event().wait()

    async with hosting(tmp_path / "state", judge, socket=tmp_path / "s" / "r.sock", search=search) as host:
        yield host


@pytest.fixture
async def client(host):
    async with Client(host.socket) as client:
        yield client


async def until(client: Client, run: str, status: str):
    async def there():
        snapshot = await client.snapshot(run)
        return snapshot if snapshot.state.status == status else None

    return await eventually(there)


async def test_a_run_from_start_to_finish(host, client, judge):
    started = await client.start(PROBLEM, title="mine", key="k")
    assert await client.start(PROBLEM, title="mine", key="k") == started, "one key, one run"
    snapshot = await client.snapshot(started.run)
    records = []
    async for record in client.events(snapshot):
        records.append(record)
        if record.data.get("state") == "finished":
            break
    assert [record.seq for record in records] == list(range(snapshot.seq + 1, snapshot.seq + 1 + len(records)))
    after = await client.snapshot(started.run)
    assert [(p.experiment, p.speedup) for p in after.state.promotions] == [("E1", 1.5), ("E3", 2.0)]
    assert (after.state.qualified, after.state.baseline_us, after.state.floor) == (True, 100.0, 0.01)
    assert after.state.experiments["E2"].gate_reason == "a/b: slower: by the double"
    assert after.state.alerts == []
    (row,) = (await client.runs()).runs
    assert (row.run, row.title, row.status, row.promotions, row.speedup) == (started.run, "mine", "finished", 2, 2.0)
    starts = [request for request, *_ in judge.starts]
    assert len(starts) == len(set(starts)) == 12
    champion = await client.candidate(started.run, after.state.champion)
    assert champion.startswith("# double: speed=2.0")
    world_model = host.supervisor._root / "runs" / started.run / "WORLD_MODEL.md"
    assert world_model.read_text() == after.state.world_model_text


async def test_the_operator_is_named_by_the_kernel(host, client):
    started = await client.start(PROBLEM)
    seq = await client.nudge(started.run, "look at the tail", category="intel", key="n1")
    assert await client.nudge(started.run, "look at the tail", category="intel", key="n1") == seq
    records = (await client.page(started.run)).records
    assert (records[0].actor, records[0].data["uid"]) == ("operator", os.getuid())
    (nudge,) = [record for record in records if record.kind == "nudge.queued"]
    assert (nudge.seq, nudge.actor, nudge.data["uid"], nudge.data["category"]) == (seq, "operator", os.getuid(), "intel")


async def test_pause_drains_then_resume_goes_on(host, client, judge, monkeypatch):
    monkeypatch.setenv("JUDGE_DOUBLE_SLEEP", "0.1")
    started = await client.start(PROBLEM)
    charge = await host.supervisor.get(started.run)
    await eventually(lambda: charge.run.state.experiments)
    seq = await client.pause(started.run, reason="lunch", key="p")
    snapshot = await until(client, started.run, "paused")
    records = (await client.page(started.run, after=seq - 1)).records
    kinds = [(record.kind, record.data.get("action") or record.data.get("state")) for record in records]
    assert kinds[:2] == [("run.control", "pause"), ("run.state", "draining")]
    assert kinds[-1] == ("run.state", "paused")
    assert (snapshot.state.in_flight, snapshot.state.requested) == ([], None)
    starts = len(judge.starts)
    await asyncio.sleep(0.3)
    assert (await client.snapshot(started.run)).seq == snapshot.seq, "nothing happens while paused"
    assert len(judge.starts) == starts
    assert await client.pause(started.run, key="p") == seq, "the same order again is the same order"
    await client.resume(started.run)
    assert len((await until(client, started.run, "finished")).state.promotions) == 2


async def test_stop_ends_the_job_in_flight_and_resume_repeats_it(client, judge):
    judge.plan("ok", "ok", "ok", "hang")
    started = await client.start(PROBLEM)
    await eventually(lambda: len(judge.starts) == 4)
    await client.stop(started.run)
    stopped = await until(client, started.run, "stopped")
    assert (stopped.state.in_flight, stopped.state.voided) == ([], 1)
    with pytest.raises(Answered, match="it is stopped"):
        await client.pause(started.run)
    await client.resume(started.run)
    await until(client, started.run, "finished")
    starts = [request for request, *_ in judge.starts]
    assert starts[3] == starts[4] == "kernel|builtin:scan|E1|1", "the cut-off measurement is repeated under its id"
    with pytest.raises(Answered, match="cannot resume"):
        await client.resume(started.run)


async def test_a_run_that_fails_says_why_in_one_line_and_takes_nobody_down(tmp_path, judge):
    async def search(port) -> None:
        raise RuntimeError("first line\nsecond line")

    async with hosting(tmp_path / "st", judge, socket=tmp_path / "r.sock", search=search) as host, Client(host.socket) as client:
        started = await client.start(PROBLEM)
        snapshot = await until(client, started.run, "failed")
        assert snapshot.state.status_reason == "RuntimeError: first line second line"
        assert (await client.health()).busy is False


async def test_an_unqualified_evaluator_starts_no_search(client, monkeypatch):
    monkeypatch.setenv("JUDGE_DOUBLE_UNQUALIFIED", "1")
    started = await client.start(PROBLEM)
    snapshot = await until(client, started.run, "failed")
    assert snapshot.state.status_reason == "the evaluator is not qualified here: clock in python (run: ratchet qualify)"
    assert snapshot.state.agents == {}
    monkeypatch.delenv("JUDGE_DOUBLE_UNQUALIFIED")
    await client.resume(started.run)
    assert (await until(client, started.run, "finished")).state.qualified is True


async def test_a_qualification_is_taken_over_by_the_next_run(client, judge):
    for expected in (1, 1):
        await until(client, (await client.start(PROBLEM)).run, "finished")
        assert sum(kind == "qualify" for _, kind, *_ in judge.starts) == expected


async def test_bad_requests_are_refused_and_change_nothing(host, client):
    started = await client.start(PROBLEM)
    await until(client, started.run, "finished")
    before = (await client.snapshot(started.run)).seq
    run = started.run
    refused = [
        ("POST", "/v1/runs", {"problem": "builtin:scam", "key": "k"}, 400, "no problem 'builtin:scam'"),
        ("POST", "/v1/runs", {"problem": PROBLEM}, 400, "missing required field `key`"),
        ("POST", "/v1/runs", {"problem": PROBLEM, "key": "k", "colour": 1}, 400, "unknown field `colour`"),
        ("POST", "/v1/runs", {"problem": PROBLEM, "key": "k", "model": "parrot"}, 503, "no model client `parrot`"),
        ("POST", "/v1/runs", {"problem": PROBLEM, "key": "k", "settings": {"agents": {"n": 0}}}, 400, "agents.n is 0"),
        ("POST", "/v1/runs", {"problem": PROBLEM, "key": "k", "settings": {"run": {"device": "cuda:0"}}}, 400, "no device 'cuda:0'"),
        ("POST", "/v1/runs", {"problem": PROBLEM, "key": "bad key"}, 400, "idempotency key"),
        ("POST", f"/v1/runs/{run}/pause?now=1", {"key": "k"}, 400, "unknown parameter 'now'"),
        ("POST", f"/v1/runs/{run}/stop", {"key": "k"}, 409, "it is finished"),
        ("POST", f"/v1/runs/{run}/nudge", {"key": "k", "text": " "}, 400, "the nudge is empty"),
        ("POST", f"/v1/runs/{run}/nudge", {"key": "k", "text": "x", "category": "y"}, 400, "unknown category"),
        ("POST", "/v1/runs/none/pause", {"key": "k"}, 404, "there is no run 'none'"),
        ("GET", "/v1/snapshot", None, 400, "missing required field `run`"),
        ("GET", "/v1/snapshot?run=../../etc", None, 404, "there is no run"),
        ("GET", f"/v1/events?run={run}&after=-1", None, 400, ">= 0"),
        ("GET", f"/v1/events?run={run}&limit=0", None, 400, ">= 1"),
        ("GET", f"/v1/events?run={run}&run={run}", None, 400, "given more than once: run"),
        ("GET", f"/v1/events?run={run}&since=1", None, 400, "unknown field `since`"),
        ("GET", f"/v1/runs/{run}/candidates/{'0' * 64}", None, 404, "cannot read candidate"),
        ("GET", f"/v1/runs/{run}/candidates/..%2F..%2Frun.toml", None, 404, ""),
        ("GET", "/v1/nothing", None, 404, "no such endpoint"),
        ("DELETE", "/v1/runs", None, 405, "does not take that method"),
    ]
    async with host.http() as http:
        for method, path, body, status, words in refused:
            response = await http.request(method, path, json=body)
            error = response.json()["error"]
            assert (response.status_code, set(error)) == (status, {"code", "kind", "message", "hint"}), path
            assert words in error["message"], path
        raw = await http.post("/v1/runs", content=b"{")
        assert raw.status_code == 400
        large = await http.post(f"/v1/runs/{run}/nudge", content=json.dumps({"key": "k", "text": "x" * (1 << 20)}).encode())
        assert "over 1048576 bytes" in large.json()["error"]["message"]
    assert (await client.snapshot(run)).seq == before
    assert len((await client.runs()).runs) == 1


async def test_an_unknown_problem_gets_near_names(client):
    with pytest.raises(Answered) as caught:
        await client.start("builtin:scam")
    assert (caught.value.code, caught.value.kind) == (2, "UnknownProblem")
    assert "builtin:scan" in caught.value.hint


async def test_pages_go_through_the_journal_and_an_unknown_nonce_is_gone(host, client):
    run = (await client.start(PROBLEM)).run
    end = (await until(client, run, "finished")).seq
    after, seen = 0, []
    while (page := await client.page(run, after=after, limit=7)).records:
        seen += [record.seq for record in page.records]
        after = page.next
    assert seen == list(range(1, end + 1))
    for parameters in ({"nonce": "other"}, {"after": str(end + 1)}):
        async with host.http() as http:
            response = await http.get("/v1/events", params={"run": run, **parameters})
        assert response.status_code == 410
        assert response.json()["nonce"] == page.nonce
        assert response.json()["seq"] == end


async def test_a_stream_goes_on_from_last_event_id(host, client):
    run = (await client.start(PROBLEM)).run
    snapshot = await until(client, run, "finished")
    headers = {**SSE, "last-event-id": f"{snapshot.nonce}:{snapshot.seq - 3}"}
    async with host.http() as http, http.stream("GET", "/v1/events", params={"run": run}, headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        ids = []
        async for event in httpx2.EventSource(response):
            if event.event == "record":
                ids.append(event.id)
                assert json.loads(event.data)["seq"] == int(event.id.split(":")[1])
            if len(ids) == 3:
                break
    assert ids == [f"{snapshot.nonce}:{snapshot.seq - back}" for back in (2, 1, 0)]
    async with host.http() as http:
        bad = await http.get("/v1/events", params={"run": run}, headers={"last-event-id": "nonsense"})
    assert bad.status_code == 400


async def test_many_followers_see_the_same_and_one_that_does_not_read_holds_nobody_up(quiet):
    async with Client(quiet.socket) as client:
        run = (await client.start(PROBLEM)).run
        snapshot = await client.snapshot(run)
        charge = await quiet.supervisor.get(run)
        async with quiet.http() as http, http.stream("GET", "/v1/events", params={"run": run}, headers=SSE):
            followers = [asyncio.create_task(follow(client, snapshot, 600)) for _ in range(5)]
            for _ in range(10):
                await charge.run.writer.commit([("note", "daemon", Note(text="x" * 4000)) for _ in range(60)])
            sequences = await asyncio.wait_for(asyncio.gather(*followers), 30)
    assert all(sequence == list(range(snapshot.seq + 1, snapshot.seq + 601)) for sequence in sequences)


async def follow(client: Client, snapshot, count: int) -> list[int]:
    seen = []
    async for record in client.events(snapshot):
        seen.append(record.seq)
        if len(seen) == count:
            return seen
    raise AssertionError("the stream ended")


async def test_a_stream_says_goodbye_when_the_daemon_stops(tmp_path, judge):
    async def search(port) -> None:
        await asyncio.Event().wait()

    names = []
    async with hosting(tmp_path / "st", judge, socket=tmp_path / "r.sock", search=search) as host:
        async with Client(host.socket) as client:
            run = (await client.start(PROBLEM)).run
            await client.nudge(run, "hello")

        async def read() -> None:
            async with host.http() as http, http.stream("GET", "/v1/events", params={"run": run}, headers=SSE) as response:
                async for event in httpx2.EventSource(response):
                    names.append(event.event)  # noqa: PERF401

        reading = asyncio.create_task(read())
        await eventually(lambda: "record" in names)
    await asyncio.wait_for(reading, 10)
    assert names[-1] == "bye"
    assert set(names[:-1]) <= {"record", "message"}


async def test_an_idle_stream_has_a_heartbeat(quiet):
    async with Client(quiet.socket) as client:
        run = (await client.start(PROBLEM)).run
    charge = await quiet.supervisor.get(run)
    await eventually(lambda: charge.run.state.floor)
    stream = events_api.follow(charge.run, charge.run.tail.seq, heartbeat_s=0.01)
    assert [await anext(stream), await anext(stream), await anext(stream)] == [b"retry: 1000\n\n", b": still here\n\n", b": still here\n\n"]
    await stream.aclose()


async def test_a_follower_goes_on_over_a_restart_and_notices_another_journal(tmp_path, judge):
    async def search(port) -> None:
        await asyncio.Event().wait()

    root, socket = tmp_path / "st", tmp_path / "r.sock"
    seen, connections = [], []
    async with Client(socket) as client:
        async with hosting(root, judge, socket=socket, search=search) as host:
            run = (await client.start(PROBLEM)).run
            charge = await host.supervisor.get(run)
            await eventually(lambda: charge.run.state.floor)
            snapshot = await client.snapshot(run)

            async def read() -> None:
                async for record in client.events(snapshot, status=connections.append):
                    seen.append((record.seq, record.data.get("text")))  # noqa: PERF401

            reading = asyncio.create_task(read())
            await client.nudge(run, "one")
            await eventually(lambda: len(seen) >= 1)
        async with hosting(root, judge, socket=socket, search=search):
            await client.nudge(run, "two")
            await eventually(lambda: len(seen) >= 3)
            reading.cancel()
            assert [seq for seq, _ in seen] == list(range(snapshot.seq + 1, snapshot.seq + 1 + len(seen)))
            assert [text for _, text in seen if text] == ["one", "two"]
            assert (connections[0], connections[-1], "lost" in connections) == ("connected", "connected", True)
            forged = type(snapshot)(nonce=snapshot.nonce, seq=snapshot.seq, hash="0" * 64, run=run, state=snapshot.state)
            with pytest.raises(StreamReset, match="is another one now"):
                await anext(client.events(forged))


async def test_gauges_show_the_queue_and_the_job(host, client, judge):
    judge.plan("hang")
    run = (await client.start(PROBLEM)).run
    await eventually(lambda: "job" in host.supervisor.gauges.read(run))
    gauges = await client.gauges(run)
    assert (gauges["job"]["kind"], gauges["job"]["step"]) == ("baseline", "timing")
    assert [(entry["run"], entry["kind"], entry["state"]) for entry in gauges["queue"]] == [(run, "baseline", "running")]
    streamed = await anext(client.gauge_stream(run))
    assert streamed["job"]["step"] == "timing"
    assert "job" not in await client.gauges()


async def test_shutdown_is_asked_for_over_the_api(host, client):
    await client.shutdown()
    assert host.shut_down.is_set()
