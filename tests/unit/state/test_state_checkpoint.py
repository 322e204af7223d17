from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from journal_samples import small_run

from state import checkpoint
from state.checkpoint import load, restore, save
from state.errors import Replaced
from state.files import checkpoint_path
from state.follower import Follower
from state.journal import Journal
from state.model import RunState
from state.reducer import fold


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "attempts.jsonl"
    with Journal.open(path, run="r1") as journal:
        journal.append(small_run())
    return path


def saved_at(path: Path, seq: int) -> RunState:
    with Follower(path) as source:
        source.poll()
        state = fold(source.since(0, limit=seq))
        digest = source.hash_at(seq)
        assert digest is not None
        save(path, state, digest=digest)
        return state


def test_restoring_from_a_checkpoint_equals_folding_everything(path: Path) -> None:
    state = saved_at(path, 15)
    with Journal.open(path, run="r1") as journal:
        assert load(path, journal) == state
        assert restore(path, journal) == fold(journal.walk())
        assert restore(path, journal).seq == 26


def test_without_one_everything_is_folded(path: Path) -> None:
    with Journal.open(path, run="r1") as journal:
        assert load(path, journal) is None
        assert restore(path, journal) == fold(journal.walk())


def test_a_lying_checkpoint_of_other_records_is_not_used(path: Path) -> None:
    saved_at(path, 15)
    path.unlink()
    with Journal.open(path, run="r1") as journal:
        journal.append(small_run()[:20])
        assert load(path, journal) is None
        assert restore(path, journal).seq == 20


def test_a_checkpoint_of_other_code_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_at(path, 15)
    monkeypatch.setattr(checkpoint, "code_fingerprint", lambda: "other")
    with Journal.open(path, run="r1") as journal:
        assert load(path, journal) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"seq":1}', b"[]"])
def test_a_broken_checkpoint_is_not_used(path: Path, content: bytes) -> None:
    checkpoint_path(path).write_bytes(content)
    with Journal.open(path, run="r1") as journal:
        assert load(path, journal) is None


def test_a_checkpoint_whose_seq_is_not_its_states_is_not_used(path: Path) -> None:
    saved_at(path, 15)
    sidecar = checkpoint_path(path)
    content = msgspec.json.decode(sidecar.read_bytes())
    content["state"]["seq"] = 14
    sidecar.write_bytes(msgspec.json.encode(content))
    with Journal.open(path, run="r1") as journal:
        assert load(path, journal) is None


def test_a_follower_sees_each_complete_line_once(tmp_path: Path, path: Path) -> None:
    whole = path.read_bytes()
    growing = tmp_path / "growing.jsonl"
    growing.touch()
    seen: list[int] = []
    with Follower(growing) as follower, growing.open("ab") as file:
        for start in range(0, len(whole), 777):
            file.write(whole[start : start + 777])
            file.flush()
            seen += [record.seq for record in follower.poll()]
            done = whole[: start + 777].count(b"\n")
            assert follower.tail_seq == done
            assert follower.torn_bytes == len(whole[: start + 777].rsplit(b"\n", 1)[-1])
        assert follower.poll() == []
        assert follower.read(26).kind == "run.state"
        assert [r.seq for r in follower.since(24)] == [25, 26]
    assert seen == list(range(1, 27))


def test_a_follower_reads_beside_the_writer(path: Path) -> None:
    with Journal.open(path, run="r1") as journal, Follower(path) as follower:
        assert len(follower.poll()) == 26
        new = journal.append([("note", "daemon", {"text": "x"})])
        assert follower.poll() == new


def test_a_follower_notices_replacement_truncation_and_removal(path: Path) -> None:
    whole = path.read_bytes()
    with Follower(path) as follower:
        follower.poll()
        path.write_bytes(whole[:-5])
        with pytest.raises(Replaced, match="cut short"):
            follower.poll()
    path.write_bytes(whole)
    with Follower(path) as follower:
        follower.poll()
        other = path.with_name("other")
        other.write_bytes(whole)
        other.replace(path)
        with pytest.raises(Replaced, match="another file"):
            follower.poll()
        path.unlink()
        with pytest.raises(Replaced, match="gone"):
            follower.poll()


def test_a_limited_poll_comes_back_for_the_rest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state.lines.CHUNK_BYTES", 512)
    with Follower(path) as follower:
        first = follower.poll(limit=3)
        assert 3 <= len(first) < 26
        assert [r.seq for r in first + follower.poll()] == list(range(1, 27))
