from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.records import JobKind, Result, Status
from state.chain import GENESIS, seal
from state.errors import BadRecord, Busy, Damaged, NewerVersion, NotWritable, StateError, Unreadable, WrongRun
from state.events import JobFinished, Note
from state.journal import Journal, read_records

NOTE = ("note", "daemon", {"text": "x", "level": "info"})


def clock() -> str:
    return "2026-10-08T17:42:00.000Z"


def open_journal(path: Path, run: str = "r1") -> Journal:
    return Journal.open(path, run=run, clock=clock)


def write_notes(path: Path, texts: list[str]) -> bytes:
    with open_journal(path) as journal:
        journal.append([("note", "daemon", Note(text=text)) for text in texts])
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attempts.jsonl"


def test_the_first_line_is_canonical_and_its_hash_covers_it(path: Path) -> None:
    import hashlib

    data = write_notes(path, ["ä"])
    body = (
        '{"v":1,"seq":1,"ts":"2026-10-08T17:42:00.000Z","run":"r1","kind":"note","actor":"daemon",'
        '"data":{"text":"ä","level":"info"},"prev":"' + GENESIS + '"}'
    ).encode()
    digest = hashlib.sha256(body).hexdigest()
    assert data == body[:-1] + f',"hash":"{digest}"}}\n'.encode()


def test_lines_are_chained_and_read_back_as_they_were_returned(path: Path) -> None:
    with open_journal(path) as journal:
        first = journal.append([NOTE, NOTE])
        second = journal.append([NOTE])
        assert [r.seq for r in first + second] == [1, 2, 3]
        assert first[0].prev == GENESIS
        assert [second[0].prev, first[1].prev] == [first[1].hash, first[0].hash]
        assert journal.read(2) == first[1]
        assert journal.since(1) == [first[1], second[0]]
        assert journal.since(0, limit=2) == first
        assert journal.since(3) == []
        assert list(journal.walk(1)) == [first[1], second[0]]
        assert journal.tail_seq == 3
        assert journal.last_hash == second[0].hash
        with pytest.raises(KeyError):
            journal.read(4)
        with pytest.raises(KeyError):
            journal.read(0)
    with open_journal(path) as again:
        assert again.repaired is None
        assert again.since(0) == first + second
    assert list(read_records(path)) == first + second


def test_a_result_is_journalled_as_its_fields(path: Path) -> None:
    result = Result(job="q|e1|1", kind=JobKind.CHECK, status=Status.OK, fingerprint={"sha256": "f"})
    with open_journal(path) as journal:
        record = journal.append([("job.finished", "evaluator", JobFinished(request="q|e1|1", result=result))])[0]
        assert record.data["result"]["status"] == "ok"
        assert journal.read(1) == record


def test_an_empty_file_is_an_empty_journal(path: Path) -> None:
    path.touch()
    with open_journal(path) as journal:
        assert journal.tail_seq == 0
        assert journal.last_hash == GENESIS
        assert journal.append([]) == []
        assert journal.append([NOTE])[0].seq == 1


def test_a_new_journal_is_private(path: Path) -> None:
    write_notes(path, ["x"])
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_write_and_one_fsync_for_a_group(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    write, fsync = os.write, os.fsync
    with open_journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: (calls.append("write"), write(fd, data))[1])
        monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd))[1])
        journal.append([NOTE] * 20)
    assert calls == ["write", "fsync"]


@pytest.mark.parametrize("cut", ["all", "half of a multi-byte character"])
def test_every_tear_of_the_last_record_is_dropped_and_reported(path: Path, cut: str) -> None:
    whole = write_notes(path, ["one", "zwei äöü", "drei äöü"])
    start = whole[:-1].rindex(b"\n") + 1
    stops = range(start + 1, len(whole)) if cut == "all" else [whole.rindex("ä".encode()) + 1]
    for stop in stops:
        path.write_bytes(whole[:stop])
        assert [r.seq for r in read_records(path)] == [1, 2]
        with open_journal(path) as journal:
            assert journal.repaired is not None
            assert f"{stop - start} bytes after record 2" in journal.repaired
            assert journal.tail_seq == 2
            assert path.read_bytes() == whole[:start]
            assert journal.append([("note", "daemon", Note(text="drei äöü"))])[0].seq == 3
        assert path.read_bytes() == whole
        assert path.with_name("attempts.jsonl.torn").read_bytes() == whole[start:stop]


def test_garbage_without_a_newline_is_a_torn_line(path: Path) -> None:
    whole = write_notes(path, ["one"])
    path.write_bytes(whole + b"\0" * 4096)
    with open_journal(path) as journal:
        assert journal.repaired is not None
    assert path.read_bytes() == whole


def test_every_changed_byte_is_found_at_its_line(path: Path) -> None:
    whole = write_notes(path, ["one", "two", "three"])
    ends = [i for i, byte in enumerate(whole) if byte == 0x0A]
    for at in range(len(whole) - 1):
        changed = bytearray(whole)
        changed[at] ^= 0x01
        path.write_bytes(changed)
        line = 1 + sum(end < at for end in ends)
        with pytest.raises(Damaged) as caught:
            list(read_records(path))
        assert caught.value.line == line, at


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_any_other_byte_in_the_middle_is_found(path: Path, at: int, byte: int) -> None:
    path.unlink(missing_ok=True)
    whole = write_notes(path, ["one", "zwei ä", "three"])
    at %= whole.rindex(b"\n", 0, -1)
    changed = whole[:at] + bytes([byte]) + whole[at + 1 :]
    path.write_bytes(changed)
    if changed == whole:
        assert len(list(read_records(path))) == 3
        return
    with pytest.raises(Damaged) as caught:
        list(read_records(path))
    assert caught.value.line == 1 + whole[:at].count(b"\n")


def _line(seq: int, prev: str, *, run: str = "r1") -> tuple[bytes, str]:
    return seal(seq=seq, ts=clock(), run=run, kind="note", actor="daemon", data={"text": "x"}, prev=prev)


def _damages() -> Iterator[tuple[str, list[bytes], int, str]]:
    one, h1 = _line(1, GENESIS)
    two, h2 = _line(2, h1)
    three, _ = _line(3, h2)
    yield "removed", [one, three], 2, "seq 3 where 2 was due"
    yield "doubled", [one, one], 2, "seq 1 where 2 was due"
    yield "swapped", [two, one], 1, "seq 2 where 1 was due"
    yield "other chain", [one, _line(2, "0" * 64)[0]], 2, "broken chain"
    yield "other run", [one, _line(2, h1, run="r2")[0]], 2, "run 'r2'"
    yield "blank line", [one, b"\n", two], 2, "not a record"
    yield "not JSON", [one, b"{oops}\n"], 2, "not a record"
    yield (
        "reordered members",
        [one, json.dumps(json.loads(two), sort_keys=True, separators=(",", ":")).encode() + b"\n"],
        2,
        "`hash` is not",
    )
    yield "spaces", [one.replace(b'"seq":1', b'"seq": 1')], 1, "hash mismatch"


@pytest.mark.parametrize(("name", "lines", "line", "why"), list(_damages()), ids=lambda v: v if isinstance(v, str) else "")
def test_other_damage_names_the_line_and_leaves_the_file(path: Path, name: str, lines: list[bytes], line: int, why: str) -> None:
    path.write_bytes(b"".join(lines))
    before = path.read_bytes()
    with pytest.raises(Damaged, match=why) as caught:
        open_journal(path)
    assert caught.value.line == line
    assert caught.value.code == 1
    assert f"{path}, line {line}" in caught.value.message
    assert path.read_bytes() == before


def _newer(path: Path) -> None:
    import hashlib

    data = write_notes(path, ["one"])
    body = data.rstrip(b"\n").replace(b'"v":1', b'"v":2')
    body = body[: body.index(b',"hash"')] + b',"added":[1]}'
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(body[:-1] + f',"hash":"{digest}"}}\n{{"torn'.encode())


def test_a_newer_version_is_read_but_not_written(path: Path) -> None:
    _newer(path)
    before = path.read_bytes()
    assert [(r.v, r.kind) for r in read_records(path)] == [(2, "note")]
    with pytest.raises(NewerVersion) as caught:
        open_journal(path)
    assert caught.value.code == 3
    assert "version 2" in caught.value.message
    assert path.read_bytes() == before


def test_the_journal_of_another_run_is_refused(path: Path) -> None:
    write_notes(path, ["one"])
    with pytest.raises(WrongRun, match="'r1', not of 'r2'"):
        open_journal(path, run="r2")


def test_a_second_writer_is_refused_until_the_first_closes(path: Path) -> None:
    with open_journal(path) as first:
        with pytest.raises(Busy) as caught:
            open_journal(path)
        assert caught.value.code == 3
        assert first.append([NOTE])[0].seq == 1
    with open_journal(path) as second:
        assert second.append([NOTE])[0].seq == 2


def test_another_process_is_refused_too(path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom state.journal import Journal\nfrom state.errors import Busy\n"
        "try:\n    Journal.open(pathlib.Path(sys.argv[1]), run='r1')\nexcept Busy as error:\n    print(error.message)\n"
    )
    with open_journal(path):
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"another process is writing {path}"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_directory_says_the_mend(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NotWritable) as caught:
        open_journal(path)
    monkeypatch.undo()
    assert caught.value.code == 3
    assert str(path) in caught.value.message
    assert "--state-dir" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_really_read_only_directory(path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        with pytest.raises(NotWritable, match="Permission denied"):
            open_journal(path)
    finally:
        path.parent.chmod(0o700)


def test_a_full_disk_costs_the_group_and_not_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    room = [30]

    def full(fd: int, data: memoryview) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken, room[0] = room[0], 0
        return write(fd, data[:taken])

    with open_journal(path) as journal:
        kept = journal.append([NOTE])
        size = path.stat().st_size
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(NotWritable, match="No space left"):
            journal.append([NOTE, NOTE])
        monkeypatch.undo()
        assert path.stat().st_size == size
        assert journal.tail_seq == 1
        kept += journal.append([NOTE])
    assert list(read_records(path)) == kept


def test_a_write_that_cannot_be_undone_ends_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with open_journal(path) as journal:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(NotWritable):
            journal.append([NOTE])
        monkeypatch.undo()
        with pytest.raises(StateError, match="can no longer be written"):
            journal.append([NOTE])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (("note", "daemon", {"level": "info"}), "missing required field `text`"),
        (("note", "daemon", {"text": 3}), "Expected `str`"),
        (("note", "daemon", {"text": "x", "more": [1.0, {"deep": float("nan")}]}), "non-finite"),
        (("note", "daemon", {"text": "\ud800"}), "not valid Unicode"),
        (("note", "daemon", {"text": object()}), "not valid"),
        (("run.state", "daemon", Note(text="x")), "Note is not the data of kind 'run.state'"),
        (("note", "daemon", {"text": "x" * (33 * 1024 * 1024)}), "over the limit"),
    ],
)
def test_what_is_not_a_record_is_never_written(path: Path, entry: tuple[str, str, dict[str, object]], why: str) -> None:
    with open_journal(path) as journal:
        with pytest.raises(BadRecord, match=why):
            journal.append([NOTE, entry])
        assert path.stat().st_size == 0
        assert journal.append([NOTE])[0].seq == 1


def test_unknown_kinds_are_kept_as_they_are(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append([("future.kind", "daemon", {"a": [1, {"b": None}]})])
    assert next(iter(read_records(path))).data == {"a": [1, {"b": None}]}


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        list(read_records(tmp_path / "nothing.jsonl"))
    with pytest.raises(Unreadable, match="directory"):
        list(read_records(tmp_path))


def test_a_closed_journal_is_not_written(path: Path) -> None:
    journal = open_journal(path)
    journal.close()
    journal.close()
    with pytest.raises(StateError, match="closed"):
        journal.append([NOTE])


def test_many_records_across_read_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state.lines.CHUNK_BYTES", 37)
    write_notes(path, [f"note {i}" for i in range(50)])
    assert [r.data["text"] for r in read_records(path)] == [f"note {i}" for i in range(50)]


_KILLED = """
import pathlib, sys
from state.journal import Journal
journal = Journal.open(pathlib.Path(sys.argv[1]), run="r1")
while True:
    records = journal.append([("note", "daemon", {"text": "x" * 3000})] * 3)
    print(records[-1].seq, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_was_acknowledged(path: Path) -> None:
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged = 0
        for _ in range(25):
            acknowledged = int(process.stdout.readline())
        process.kill()
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split("\n")[:-1])])
        process.wait()
        process.stdout.close()
        with open_journal(path) as journal:
            assert journal.tail_seq >= acknowledged
            assert [r.seq for r in journal.walk()] == list(range(1, journal.tail_seq + 1))
