from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journal_samples import SHA, opened, result, small_run, started

from state.chain import GENESIS, seal
from state.checkpoint import Checkpoint, code_fingerprint, save
from state.errors import Damaged, Unreadable
from state.files import checkpoint_path
from state.follower import Follower
from state.journal import Journal
from state.model import RunState
from state.reducer import fold
from state.verification import encoded, rebuild, verify

Entry = tuple[str, str, dict[str, Any]]


def written(path: Path, entries: list[Entry]) -> Path:
    with Journal.open(path, run="r1") as journal:
        journal.append(entries)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attempts.jsonl"


def test_a_whole_journal_passes(path: Path) -> None:
    written(path, small_run())
    found = verify(path)
    assert (found.ok, found.code, found.problems) == (True, 0, ())
    assert (found.records, found.run, found.torn_bytes, found.checkpoint) == (26, "r1", 0, "none")
    assert found.kinds["job.finished"] == 4
    assert found.last_hash in found.message
    assert encoded(found.state) == encoded(rebuild(path))
    assert rebuild(path).champion == SHA["a"]


def test_an_empty_journal_is_not_ok_and_says_so(path: Path) -> None:
    path.touch()
    found = verify(path)
    assert (found.ok, found.code, found.records, found.last_hash) == (False, 1, 0, "0" * 64)
    assert "nothing to verify" in found.message
    assert rebuild(path) == RunState()


def test_a_missing_journal(path: Path) -> None:
    with pytest.raises(Unreadable):
        verify(path)


def test_a_torn_end_is_reported_and_left_alone(path: Path) -> None:
    written(path, small_run())
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"v":1,')
    found = verify(path)
    assert (found.ok, found.torn_bytes, found.records) == (True, 7, 26)
    assert "torn last line of 7 bytes" in found.message
    assert path.read_bytes() == whole + b'{"v":1,'


def test_a_changed_byte_in_the_middle_names_its_line(path: Path) -> None:
    written(path, small_run())
    lines = path.read_bytes().split(b"\n")
    lines[11] = lines[11].replace(b"fuse it", b"fuse me")
    path.write_bytes(b"\n".join(lines))
    found = verify(path)
    assert (found.ok, found.code, found.records) == (False, 1, 11)
    assert found.message == "line 12: hash mismatch: the line was changed after it was written"
    with pytest.raises(Damaged) as caught:
        rebuild(path)
    assert caught.value.line == 12


@pytest.mark.parametrize(
    ("entries", "line", "why"),
    [
        (
            [
                ("job.started", "daemon", started("q|1", "check")),
                ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check")}),
                ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check")}),
            ],
            3,
            "request q|1 has a second result; the first is in line 2",
        ),
        ([("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check")})], 1, "was never started"),
        (
            [
                ("job.started", "daemon", started("q|1", "check")),
                ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check")}),
                ("job.started", "daemon", started("q|1", "check")),
            ],
            3,
            "started again after its result in line 2",
        ),
        (
            [
                ("job.started", "daemon", started("q|1", "check")),
                ("job.finished", "evaluator", {"request": "q|1", "result": result("q|2", "check")}),
            ],
            2,
            "answered with the result of q|2",
        ),
        ([("experiment.opened", "x", opened(prediction_sha256="0" * 64))], 1, "frozen prediction of e1 does not match"),
        ([("world_model.edited", "x", {"sha256": "0" * 64, "lines": 1, "text": "x"})], 1, "does not match its hash"),
        ([small_run()[10], small_run()[21]], 2, "promoted without its gate's yes"),
    ],
)
def test_records_that_contradict_each_other(path: Path, entries: list[Entry], line: int, why: str) -> None:
    found = verify(written(path, entries))
    assert [problem.line for problem in found.problems] == [line]
    assert why in found.message
    assert found.code == 1


def test_candidate_texts_beside_the_journal_are_checked(path: Path) -> None:
    text = b"class ModelNew: ..."
    sha256 = hashlib.sha256(text).hexdigest()
    written(path, [("experiment.opened", "x", opened()), ("candidate.submitted", "x", {"experiment": "e1", "sha256": sha256, "bytes": 3})])
    assert verify(path).ok
    folder = path.parent / "candidates"
    folder.mkdir()
    assert "is not in candidates/" in verify(path).message
    (folder / f"{sha256}.py").write_bytes(text)
    assert verify(path).ok
    (folder / f"{sha256}.py").write_bytes(text + b" ")
    assert "is not the text it is named after" in verify(path).message


def test_a_checkpoint_that_agrees_and_one_that_does_not(path: Path) -> None:
    written(path, small_run())
    with Follower(path) as source:
        source.poll()
        state = fold(source.since(0, limit=20))
        digest = source.hash_at(20)
    assert digest is not None
    save(path, state, digest=digest)
    assert (verify(path).ok, verify(path).checkpoint) == (True, "agrees")
    state.device_s = 99.0
    save(path, state, digest=digest)
    found = verify(path)
    assert (found.ok, found.checkpoint) == (False, "differs")
    assert "attempts.jsonl.checkpoint" in found.message
    other = Checkpoint(seq=20, hash="0" * 64, code=code_fingerprint(), state=state)
    checkpoint_path(path).write_bytes(msgspec.json.encode(other))
    assert (verify(path).ok, verify(path).checkpoint) == (True, "unused")


def test_a_line_that_is_chained_but_is_no_record(path: Path) -> None:
    line, digest = seal(seq=1, ts="t", run="r1", kind="note", actor="daemon", data={"text": "x"}, prev=GENESIS)
    other, _ = seal(seq=2, ts="t", run="r1", kind="note", actor="daemon", data=[1], prev=digest)  # type: ignore[arg-type]
    path.write_bytes(line + other)
    found = verify(path)
    assert (found.code, found.state.seq) == (1, 0)
    assert found.message.startswith("line 2: not a record: Expected `object`, got `array`")
