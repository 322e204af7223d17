from __future__ import annotations

import datetime
import errno
import hashlib
import os
from pathlib import Path

import pytest

from state import files
from state.errors import BadName, NotWritable, Unreadable
from state.files import RunFiles, atomic_write, list_runs, new_run_id, read_candidate, state_dir, store_candidate, store_path

NOW = datetime.datetime(2026, 10, 8, 19, 42, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


def test_where_state_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/ratchet:/var/lib/other")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir("/explicit") == Path("/explicit")
    assert state_dir() == Path("/var/lib/ratchet")
    monkeypatch.delenv("STATE_DIRECTORY")
    assert state_dir() == tmp_path / "ratchet"
    monkeypatch.chdir(tmp_path)
    assert state_dir(Path("here")) == tmp_path / "here"
    monkeypatch.setenv("HOME", "/home/someone")
    assert state_dir("~/s") == Path("/home/someone/s")
    assert store_path(tmp_path) == tmp_path / "store.sqlite"


def test_the_paths_of_a_run(tmp_path: Path) -> None:
    run = RunFiles(tmp_path, "r1")
    base = tmp_path / "runs" / "r1"
    assert run.config == base / "run.toml"
    assert run.journal == base / "attempts.jsonl"
    assert run.checkpoint == base / "attempts.jsonl.checkpoint"
    assert run.world_model == base / "WORLD_MODEL.md"
    assert run.candidate("a" * 64) == base / "candidates" / f"{'a' * 64}.py"
    assert run.experiment("e1") == base / "experiments" / "e1"
    assert list_runs(tmp_path) == []
    run.create()
    run.create()
    assert sorted(path.name for path in base.iterdir()) == ["archive", "candidates", "experiments", "report"]
    assert base.stat().st_mode & 0o777 == 0o700
    run.journal.touch()
    RunFiles(tmp_path, "r0").create()
    assert list_runs(tmp_path) == ["r1"]


@pytest.mark.parametrize("name", ["", ".", "..", "../r", "a/b", "a\0b", "-x", ".hidden", "a..b", "x" * 101, "ü"])
def test_names_that_are_not_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadName) as caught:
        RunFiles(tmp_path, name)
    assert caught.value.code == 2
    with pytest.raises(BadName):
        RunFiles(tmp_path, "r1").experiment(name)
    with pytest.raises(BadName):
        RunFiles(tmp_path, "r1").candidate(name)


@pytest.mark.parametrize(
    ("problem", "slug"),
    [
        ("builtin:softmax", "softmax"),
        ("/home/me/My Kernel.py", "my-kernel"),
        ("kernel:L2_014", "l2-014"),
        ("/x/" + "y" * 80, "y" * 32),
        ("日本", "run"),
    ],
)
def test_run_ids_sort_by_start_and_name_their_problem(tmp_path: Path, problem: str, slug: str) -> None:
    run = new_run_id(problem, now=NOW, token="3f9a")
    assert run == f"20261008-174205-{slug}-3f9a"
    assert RunFiles(tmp_path, run).run == run
    assert run < new_run_id("builtin:a", now=NOW + datetime.timedelta(seconds=1))


def test_two_runs_at_once_differ() -> None:
    assert len({new_run_id("builtin:a", now=NOW) for _ in range(20)}) > 15


def test_candidates_are_stored_by_hash(tmp_path: Path) -> None:
    run = RunFiles(tmp_path, "r1")
    run.create()
    sha256 = store_candidate(run, "class ModelNew: ...  # ä\n")
    assert sha256 == hashlib.sha256("class ModelNew: ...  # ä\n".encode()).hexdigest()
    before = run.candidate(sha256).stat().st_ino
    assert store_candidate(run, "class ModelNew: ...  # ä\n") == sha256
    assert run.candidate(sha256).stat().st_ino == before
    assert read_candidate(run, sha256) == "class ModelNew: ...  # ä\n"
    run.candidate(sha256).write_text("other")
    with pytest.raises(Unreadable, match="not the text it is named after"):
        read_candidate(run, sha256)
    with pytest.raises(Unreadable, match="cannot read candidate"):
        read_candidate(run, "0" * 64)


def test_an_atomic_write_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_write(path, "one ä")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_failed_atomic_write_keeps_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    atomic_write(path, "old")

    def fail(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(NotWritable, match="No space left") as caught:
        atomic_write(path, "new")
    monkeypatch.undo()
    assert (caught.value.code, caught.value.errno) == (3, errno.ENOSPC)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_order_of_an_atomic_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(files.os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(files.os, "replace", lambda a, b: (calls.append("replace"), replace(a, b))[1])
    atomic_write(tmp_path / "file", "x")
    assert calls == ["fsync", "replace", "fsync"]


def test_names_that_cannot_be_made_durable_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="No such file"):
        files.sync_directory(tmp_path / "missing")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a directory is due")
    with pytest.raises(NotWritable) as caught:
        RunFiles(tmp_path, "r1").create()
    assert "--state-dir" in caught.value.hint
    with pytest.raises(NotWritable):
        atomic_write(tmp_path / "missing" / "file", "x")
