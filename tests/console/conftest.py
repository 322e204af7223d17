"""Fixtures of the console's pilot and snapshot tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.console import scenario


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The run of `scenario` as a journal file."""
    path = tmp_path / "run" / "attempts.jsonl"
    path.parent.mkdir()
    scenario.write_journal(path)
    return path
