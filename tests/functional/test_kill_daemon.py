"""The demo's daemon killed five times with SIGKILL: the program that shows it, run as a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.exclusive
def test_five_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    out = tmp_path / "kills.json"
    done = subprocess.run([sys.executable, "-m", "evidence.bench.kill_daemon", str(out)], capture_output=True, text=True, timeout=1800)
    report = json.loads(out.read_text())
    assert report["faults"] == [], done.stderr
    assert done.returncode == 0
    assert len(report["kills"]) == 5
    assert any(kill["during"].startswith("in ") for kill in report["kills"])
    assert report["journal"]["doubled"] == []
    assert report["journal"]["lost"] == []
