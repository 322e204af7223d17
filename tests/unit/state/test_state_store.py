from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_samples import SHA, entries, opened, records_of, result, small_run, started

from state.errors import NewerVersion, NotWritable
from state.events import Record
from state.follower import Follower
from state.journal import Journal
from state.model import RunState
from state.reducer import apply, fold
from state.schema import SCHEMA_VERSION
from state.store import Store

Entry = tuple[str, str, dict[str, Any]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "store.sqlite")
    yield store
    await store.close()


async def everything(store: Store, run: str = "r1") -> bytes:
    parts = [
        await store.list_runs(),
        await store.experiments(run),
        await store.events(run),
        await store.promotions(run),
        await store.jobs(run),
        await store.claims(run),
    ]
    return msgspec.json.encode(parts)


async def apply_in_pieces(store: Store, records: list[Record], cuts: list[int]) -> None:
    state, start = RunState(), 0
    for stop in [*sorted(cuts), len(records)]:
        piece = records[start:stop]
        for record in piece:
            apply(state, record)
        await store.apply(piece, state=state)
        start = max(start, stop)


async def test_what_lists_show_of_a_short_run(store: Store) -> None:
    await apply_in_pieces(store, records_of(small_run()), [])
    run = (await store.list_runs())[0]
    assert (run.run, run.title, run.status, run.speedup, run.promotions, run.experiments) == ("r1", "softmax", "finished", 1.5, 1, 1)
    assert (run.seq, run.baseline_us, run.champion_us, run.cost_usd) == (26, 150.0, 100.0, 0.25)
    experiment = (await store.experiments("r1"))[0]
    assert (experiment.id, experiment.status, experiment.rung, experiment.rho, experiment.speedup) == ("e1", "promoted", 3, 0.8, 1.5)
    assert [(j.request, j.kind, j.status, j.started_seq, j.finished_seq) for j in await store.jobs("r1")] == [
        ("q|b|0", "baseline", "ok", 3, 4),
        ("q|f|0", "floor", "ok", 5, 6),
        ("q|e1|1", "evaluate", "ok", 14, 15),
        ("q|e1|2", "ab", "ok", 16, 17),
    ]
    assert [(p.number, p.sha256, p.seq) for p in await store.promotions("r1")] == [(1, SHA["a"], 22)]
    claim = (await store.claims("r1"))[0]
    assert (claim.claim, claim.sentence, claim.confidence, claim.buried, claim.evidence) == ("C1", "exp dominates", 0.8, False, "e1")
    assert await store.run("r1") == run
    assert await store.run("r2") is None


async def test_filters(store: Store) -> None:
    more: list[Entry] = [
        *small_run(),
        ("experiment.opened", "x", opened("e2", title="100% of _lanes_")),
        ("job.started", "x", started("q|e2|1", "evaluate", experiment="e2")),
        ("job.finished", "evaluator", {"request": "q|e2|1", "result": result("q|e2|1", "evaluate", "incorrect")}),
    ]
    await apply_in_pieces(store, records_of(more), [])
    assert [e.id for e in await store.experiments("r1", status="incorrect")] == ["e2"]
    assert [e.id for e in await store.experiments("r1", text="AS EXPECTED")] == ["e1"]
    assert [e.id for e in await store.experiments("r1", text="100%")] == ["e2"]
    assert [e.id for e in await store.experiments("r1", text="_lanes_")] == ["e2"]
    assert [e.id for e in await store.experiments("r1", text="%")] == ["e2"]
    assert await store.experiments("r1", status="promoted", text="lanes") == []
    assert [e.seq for e in await store.events("r1", after=20, kinds={"promotion", "note"})] == [22, 25]
    assert [e.headline for e in await store.events("r1", text="filling")] == ["warning · disk is filling up"]
    assert [e.seq for e in await store.events("r1", limit=3)] == [1, 2, 3]
    assert await store.events("r1", kinds=()) == []
    assert await store.events("r2") == []
    by_agent = {e.seq: e.experiment for e in await store.events("r1", kinds={"agent.started", "candidate.submitted"})}
    assert by_agent == {7: None, 12: "e1", 13: "e1"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=entries, cuts=st.lists(st.integers(0, 40), max_size=4))
async def test_any_batches_and_repeats_give_the_same_rows(tmp_path: Path, entries: list[Entry], cuts: list[int]) -> None:
    records = records_of([small_run()[0], *entries])
    answers = []
    for name, pieces in (("whole", []), ("pieces", cuts), ("single", list(range(len(records))))):
        store = await Store.open(Path(tempfile.mkdtemp(dir=tmp_path)) / name)
        try:
            await apply_in_pieces(store, records, pieces)
            answers.append(await everything(store))
            await store.apply(records, state=fold(records))
            assert await everything(store) == answers[-1]
        finally:
            await store.close()
    assert answers[0] == answers[1] == answers[2]


async def test_rebuilding_gives_byte_for_byte_the_same_answers(store: Store, tmp_path: Path) -> None:
    path, state = tmp_path / "attempts.jsonl", RunState()
    with Journal.open(path, run="r1") as journal:
        for entry in small_run():
            records = journal.append([entry])
            apply(state, records[0])
            await store.apply(records, state=state)
    live = await everything(store)
    assert await store.rebuild(path) == state
    assert await everything(store) == live
    other = await Store.open(tmp_path / "other.sqlite")
    await other.rebuild(path)
    assert await everything(other) == live
    await other.close()


async def test_catching_up_projects_only_what_is_new(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "attempts.jsonl"
    with Journal.open(path, run="r1") as journal:
        journal.append(small_run()[:10])
        assert await store.catch_up(journal, run="r1", state=fold(journal.walk())) == 10
        journal.append(small_run()[10:])
        assert await store.catch_up(journal, run="r1", state=fold(journal.walk())) == 16
        assert await store.catch_up(journal, run="r1", state=fold(journal.walk())) == 0
        assert len(await store.events("r1")) == 26


async def test_a_journal_that_is_another_one_is_projected_anew(store: Store, tmp_path: Path) -> None:
    for title in ("first", "second"):
        path = tmp_path / f"{title}.jsonl"
        with Journal.open(path, run="r1") as journal:
            journal.append([("run.created", "daemon", {**small_run()[0][2], "title": title})])
        with Follower(path) as source:
            source.poll()
            await store.catch_up(source, run="r1", state=fold(source.walk()))
    assert [run.title for run in await store.list_runs()] == ["second"]
    assert len(await store.events("r1")) == 1


async def test_forgetting_a_run_leaves_the_others(store: Store) -> None:
    for run in ("r1", "r2"):
        records = records_of(small_run(), run=run)
        await store.apply(records, state=fold(records))
    await store.forget("r1")
    assert [run.run for run in await store.list_runs()] == ["r2"]
    assert (await store.events("r1"), len(await store.events("r2"))) == ([], 26)


async def test_a_voided_job_is_counted_and_repeated(store: Store) -> None:
    start: Entry = ("job.started", "daemon", started("q|1", "check"))
    await apply_in_pieces(store, records_of([start, ("run.resumed", "daemon", {"pid": 1, "voided": ["q|1"]})]), [])
    assert [(j.status, j.voided) for j in await store.jobs("r1")] == [("void", 1)]
    whole = [
        start,
        ("run.resumed", "daemon", {"pid": 1, "voided": ["q|1"]}),
        start,
        ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check", "incorrect")}),
    ]
    records = records_of(whole)
    await store.apply(records, state=fold(records))
    assert [(j.status, j.voided, j.started_seq, j.finished_seq) for j in await store.jobs("r1")] == [("incorrect", 1, 1, 4)]


async def test_a_failure_inside_leaves_nothing_of_the_batch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    records = records_of(small_run())

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("state.store_writes.run_row", fail)
    with pytest.raises(RuntimeError, match="boom"):
        await store.apply(records, state=fold(records))
    monkeypatch.undo()
    assert await store.events("r1") == []
    await store.apply(records, state=fold(records))
    assert len(await store.events("r1")) == 26


async def test_concurrent_batches_of_two_runs(store: Store) -> None:
    runs = {run: records_of(small_run(), run=run) for run in ("r1", "r2", "r3")}
    await asyncio.gather(*(store.apply(records, state=fold(records)) for records in runs.values()))
    assert {run.run: run.seq for run in await store.list_runs()} == {"r1": 26, "r2": 26, "r3": 26}


@pytest.mark.parametrize("old", ["older", "not a database", "cut"])
async def test_an_old_or_broken_file_is_dropped_and_filled_again(tmp_path: Path, old: str) -> None:
    path = tmp_path / "store.sqlite"
    if old == "older":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE runs (x)")
        connection.commit()
        connection.close()
    else:
        path.write_bytes(b"hello world, this is no database" * 100 if old == "not a database" else b"SQLite format 3\0" + b"\1" * 2000)
    store = await Store.open(path)
    assert store.dropped
    records = records_of(small_run())
    await store.apply(records, state=fold(records))
    assert len(await store.list_runs()) == 1
    await store.close()
    again = await Store.open(path)
    assert (again.dropped, len(await again.list_runs())) == ("", 1)
    await again.close()


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerVersion) as caught:
        await Store.open(path)
    assert caught.value.code == 3
    assert path.read_bytes() == before


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(NotWritable) as caught:
        await Store.open(tmp_path / "missing" / "store.sqlite")
    assert caught.value.code == 3
