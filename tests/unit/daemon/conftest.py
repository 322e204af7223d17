"""Fixtures of the daemon's tests: a real judge process that measures nothing, and directories of their own."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "functional"))
JUDGE = [sys.executable, str(ROOT / "tests" / "functional" / "judge_double.py")]


class Judge:
    """The judge double of one test."""

    command = JUDGE
    shell = shlex.join(JUDGE)

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def plan(self, *steps: str) -> None:
        """What the next starts do, in order."""
        (self.directory / "plan").write_text("\n".join(steps))

    @property
    def starts(self) -> list[list[str]]:
        """`[request, kind, pid, group]` of every start."""
        log = self.directory / "starts.log"
        return [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    directory = tmp_path / "judge"
    directory.mkdir()
    monkeypatch.setenv("JUDGE_DOUBLE_DIR", str(directory))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("RATCHET_LEASE_DIR", str(tmp_path / "leases"))
    return Judge(directory)
