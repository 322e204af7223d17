"""Fixtures of the unit tests of `console`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from state.events import Record
from state.lines import read_records
from state.model import RunState
from state.reducer import fold
from tests.console import scenario


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The run of `scenario` as a journal file."""
    path = tmp_path / "run" / "attempts.jsonl"
    path.parent.mkdir()
    scenario.write_journal(path)
    return path


@pytest.fixture
def records(journal: Path) -> list[Record]:
    """The run of `scenario` as records."""
    return list(read_records(journal))


@pytest.fixture
def state(records: list[Record]) -> RunState:
    """The run of `scenario` folded."""
    return fold(records)
