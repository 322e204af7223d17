"""Group commit over a real journal."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from daemon.writer import Writer
from state.errors import BadRecord, NotWritable, StateError
from state.events import IdeaProposed, Note
from state.journal import Journal, read_records
from state.model import RunState
from state.reducer import fold


def note(text: str):
    return ("note", "daemon", Note(text=text))


def idea(name: str, cause: str):
    return ("idea.proposed", "idea:1", IdeaProposed(idea=name, title="t", category="search", rationale="r", beliefs=[], cause=cause))


class SlowJournal(Journal):
    """A journal whose writes wait until they may."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.may = threading.Event()
        self.groups: list[int] = []

    def append(self, entries):
        assert self.may.wait(10)
        self.groups.append(len(entries))
        return super().append(entries)


@pytest.fixture
def journal(tmp_path: Path):
    with Journal.open(tmp_path / "attempts.jsonl", run="r") as opened:
        yield opened


@pytest.fixture
def slow(tmp_path: Path):
    with SlowJournal.open(tmp_path / "attempts.jsonl", run="r") as opened:
        yield opened
        opened.may.set()


async def test_what_comes_while_the_disk_works_is_one_group(slow):
    writer = Writer(slow, state=RunState())
    commits = [asyncio.create_task(writer.commit([note(str(n))])) for n in range(50)]
    await asyncio.sleep(0.05)
    slow.may.set()
    records = [(await commit)[0] for commit in commits]
    assert [record.seq for record in records] == list(range(1, 51))
    assert [record.data["text"] for record in records] == [str(n) for n in range(50)]
    assert len(slow.groups) <= 2
    await writer.finish()


async def test_nobody_sees_a_record_before_it_is_durable_and_folded(slow):
    seen: list[tuple[int, int]] = []
    writer = Writer(slow, state=RunState(), observers=[lambda records, state: seen.append((records[-1].seq, state.seq))])
    waiter = asyncio.create_task(writer.tail.wait(0))
    commit = asyncio.create_task(writer.commit([note("a"), note("b")]))
    await asyncio.sleep(0.05)
    assert (writer.tail.seq, writer.state.seq, waiter.done(), seen) == (0, 0, False, [])
    slow.may.set()
    await waiter
    assert (writer.tail.seq, writer.state.seq, seen) == (2, 2, [(2, 2)])
    await commit
    await writer.finish()


async def test_one_cause_has_one_effect_however_often_it_comes(journal):
    writer = Writer(journal, state=RunState())
    together = await asyncio.gather(*(writer.commit([idea("I1", "o/1")], once=True) for _ in range(5)))
    later = await writer.commit([idea("I1", "o/1")], once=True)
    other = await writer.commit([idea("I2", "o/2")], once=True)
    assert {records[0].seq for records in [*together, later]} == {1}
    assert other[0].seq == 2
    assert writer.state.effects == {"idea.proposed o/1": 1, "idea.proposed o/2": 2}
    await writer.finish()


async def test_a_record_that_cannot_be_journalled_costs_nobody_else(slow):
    writer = Writer(slow, state=RunState())
    good = asyncio.create_task(writer.commit([note("good")]))
    bad = asyncio.create_task(writer.commit([note("\ud800")]))
    more = asyncio.create_task(writer.commit([note("more")]))
    await asyncio.sleep(0.05)
    slow.may.set()
    assert ((await good)[0].seq, (await more)[0].seq) == (1, 2)
    with pytest.raises(BadRecord):
        await bad
    with pytest.raises(BadRecord):
        await writer.commit([("note", "daemon", {"text": 5})])
    await writer.finish()


async def test_a_full_disk_fails_the_group_and_the_next_one_works(journal, monkeypatch):
    writer = Writer(journal, state=RunState())
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(NotWritable, match="No space left"):
        await writer.commit([note("lost")])
    monkeypatch.setattr(os, "fsync", real)
    # The undo needed fsync too and failed: the journal says so until it is opened again.
    with pytest.raises(StateError, match="can no longer be written"):
        await writer.commit([note("refused")])
    await writer.finish()


async def test_a_cancelled_caller_does_not_take_its_record_back(slow):
    writer = Writer(slow, state=RunState())
    commit = asyncio.create_task(writer.commit([note("stays")]))
    await asyncio.sleep(0.05)
    commit.cancel()
    slow.may.set()
    await writer.finish()
    assert [record.data["text"] for record in read_records(slow.path)] == ["stays"]


async def test_finishing_writes_what_is_queued_and_takes_nothing_more(journal):
    writer = Writer(journal, state=RunState())
    commits = [asyncio.create_task(writer.commit([note(str(n))])) for n in range(10)]
    await asyncio.sleep(0)
    await writer.finish()
    assert [(await commit)[0].seq for commit in commits] == list(range(1, 11))
    assert writer.tail.closed
    with pytest.raises(StateError, match="closed"):
        await writer.commit([note("late")])
    assert fold(read_records(journal.path)) == writer.state


async def test_a_bug_in_an_observer_is_said_and_hangs_nobody(journal):
    def broken(records, state) -> None:
        raise ZeroDivisionError

    writer = Writer(journal, state=RunState(), observers=[broken])
    with pytest.raises(StateError, match="ZeroDivisionError"):
        await writer.commit([note("a")])
    with pytest.raises(StateError, match="is broken"):
        await writer.commit([note("b")])
    await writer.finish()
