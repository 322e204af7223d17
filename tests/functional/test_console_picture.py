"""The program that takes the README's pictures, and the pictures it took."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from evidence.bench.console_picture import LIMIT_BYTES  # noqa: E402
from tests.console import scenario  # noqa: E402

PROGRAM = [sys.executable, "-m", "evidence.bench.console_picture"]


def facts(picture: Path) -> dict[str, Any]:
    found = re.search(r"<metadata>(.*?)</metadata>", picture.read_text(encoding="utf-8"))
    assert found is not None
    read: dict[str, Any] = json.loads(html.unescape(found[1]))
    return read


def take(tmp_path: Path, journal: Path, *options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [*PROGRAM, str(journal), str(tmp_path / "out.svg"), "--wait", "3", *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=180, check=False)


def test_a_picture_shows_the_journal_and_names_its_run(tmp_path: Path) -> None:
    journal = tmp_path / "attempts.jsonl"
    written = scenario.write_journal(journal)
    done = take(tmp_path, journal, "--size", "100x30")
    assert done.returncode == 0, done.stderr
    said = facts(tmp_path / "out.svg")
    assert (said["run"], said["records"], said["last_hash"]) == (scenario.RUN, len(written), written[-1].hash)
    shown = html.unescape((tmp_path / "out.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    assert scenario.RUN in shown
    assert "speed-up" in shown


def test_a_journal_that_cannot_be_shown_gives_no_picture(tmp_path: Path) -> None:
    empty = tmp_path / "attempts.jsonl"
    empty.write_bytes(b"")
    done = take(tmp_path, empty)
    assert done.returncode == 1
    assert "holds no complete record" in done.stderr
    assert not (tmp_path / "out.svg").exists()


def test_the_committed_pictures_are_small_and_name_what_they_show() -> None:
    pictures = sorted((ROOT / "evidence" / "pictures").glob("*.svg"))
    assert [picture.name for picture in pictures] == ["experiment.svg", "home.svg"]
    for picture in pictures:
        assert picture.stat().st_size <= LIMIT_BYTES
        said = facts(picture)
        assert picture.name in said["command"]
        assert len(said["last_hash"]) == len(said["fingerprint"]) == 64
        assert said["run"] in picture.read_text(encoding="utf-8")
    assert len({facts(picture)["run"] for picture in pictures}) == 1
