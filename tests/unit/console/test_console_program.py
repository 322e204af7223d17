"""Commands in hints can be typed as they stand."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli import program


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / ".venv" / "bin" / "ratchet"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "argv", [str(path)])
    program.program.cache_clear()
    yield path
    program.program.cache_clear()


HINT = "start one with: ratchet daemon, or see `ratchet run --help`; ratchet's log is ~/ratchet/daemon.log"


def test_a_program_off_the_path_is_named_by_its_path(script: Path) -> None:
    assert program.typed(HINT) == (
        "start one with: .venv/bin/ratchet daemon, or see `.venv/bin/ratchet run --help`; ratchet's log is ~/ratchet/daemon.log"
    )


def test_from_elsewhere_the_path_is_whole(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert program.typed("ratchet daemon") == f"{script} daemon"


def test_where_the_shell_finds_it_nothing_changes(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}/usr/bin")
    assert program.typed(HINT) == HINT


def test_another_programs_name_is_not_ours(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    assert program.typed(HINT) == HINT
