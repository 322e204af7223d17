"""The demo and live commands against a real daemon process; only the judge is a double that measures nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RATCHET = [sys.executable, "-c", "from console.cli import main; main()"]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    (tmp_path / "judge").mkdir()
    return {
        **kept,
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "RATCHET_JUDGE": f"{sys.executable} {ROOT / 'tests' / 'functional' / 'judge_double.py'}",
        "JUDGE_DOUBLE_DIR": str(tmp_path / "judge"),
        "RATCHET_LEASE_DIR": str(tmp_path / "lease"),
    }


@pytest.fixture
def place(home: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "demo"
    yield directory
    subprocess.run([*RATCHET, "daemon", "--stop", "--state-dir", str(directory)], env=home, capture_output=True, timeout=60, check=False)


def ratchet(home: dict[str, str], *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RATCHET, *arguments], capture_output=True, text=True, env=home, timeout=timeout, check=False, stdin=subprocess.DEVNULL
    )


def test_the_demo_without_a_terminal_tells_its_story_and_its_replay_tells_the_same(home: dict[str, str], place: Path) -> None:
    done = ratchet(home, "demo", "--state-dir", str(place))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    journal = Path(next(row for row in lines if row.startswith("journal ")).split()[1])
    assert lines[-1].split(maxsplit=1) == ["replay", f"ratchet replay {journal}"]
    replayed = ratchet(home, "replay", str(journal), "--plain").stdout
    story = replayed.split("\n\n")[0]
    assert story in done.stdout
    assert "run is ● finished" in story
    assert replayed.split("\n\n")[1].splitlines()[1:] == done.stdout.split("\n\n")[1].splitlines()[1:]
    verified = ratchet(home, "state", "verify", str(journal))
    assert verified.returncode == 0, verified.stdout
    assert ratchet(home, "status", "--state-dir", str(place)).returncode == 4


def test_the_demo_prints_one_json_object_last(home: dict[str, str], place: Path) -> None:
    done = ratchet(home, "demo", "--json", "--state-dir", str(place))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    keys = {"run", "journal", "wall_s", "baseline_us", "compiled_us", "champion_us", "speedup", "promotions", "banked", "incorrect"}
    assert keys | {"compile_errors", "refused", "unresolved", "predictions"} <= set(found)
    assert (found["status"], found["baseline_us"], found["compiled_us"]) == ("finished", 100.0, 90.0)
    assert found["predictions"]["made"] == found["predictions"]["reconciled"] > 0
    assert "run is ● finished" in done.stderr


def test_the_same_directory_goes_on_after_the_daemon_was_killed(home: dict[str, str], place: Path) -> None:
    slow = {**home, "JUDGE_DOUBLE_SLEEP": "1"}
    command = [*RATCHET, "demo", "--plain", "--state-dir", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow) as process:
        assert process.stdout is not None
        for row in process.stdout:
            if "candidate" in row:
                break
        os.kill(json.loads((place / "daemon.lock").read_text())["pid"], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert "the demo's daemon has ended" in said
    assert f"ratchet demo --state-dir {place}" in said
    done = ratchet(home, "demo", "--json", "--state-dir", str(place), "--resume")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == "finished"
    assert "run taken up again by a new daemon" in done.stderr
    assert [path.name for path in (place / "runs").iterdir()] == [found["run"]]
    assert ratchet(home, "state", "verify", found["journal"]).returncode == 0


@pytest.mark.parametrize(("wish", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"])
def test_ending_it_early_stops_the_demos_daemon_and_says_how_to_go_on(home: dict[str, str], place: Path, wish: int, code: int) -> None:
    slow = {**home, "JUDGE_DOUBLE_SLEEP": "1"}
    command = [*RATCHET, "demo", "--plain", "--state-dir", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow) as process:
        assert process.stdout is not None
        for row in process.stdout:
            if "experiment" in row:
                break
        process.send_signal(wish)
        _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "stopping the demo's daemon; the journal stays" in said
    assert f"ratchet demo --state-dir {place}" in said
    assert "Traceback" not in said
    deadline = time.monotonic() + 30
    while ratchet(home, "status", "--state-dir", str(place)).returncode != 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ratchet(home, "status", "--state-dir", str(place)).returncode == 4


def test_a_reader_that_goes_away_stops_the_demos_daemon(home: dict[str, str], place: Path) -> None:
    """`ratchet demo | head`: nobody would see that a daemon is left."""
    slow = {**home, "JUDGE_DOUBLE_SLEEP": "0.5"}
    command = [*RATCHET, "demo", "--plain", "--state-dir", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        code = process.wait(60)
    assert (code, "Traceback" in said) == (0, False)
    assert "stopping the demo's daemon; the journal stays" in said
    assert ratchet(home, "status", "--state-dir", str(place)).returncode == 4


def test_an_operator_steers_a_run_from_the_command_line(home: dict[str, str], place: Path) -> None:
    slow = {**home, "JUDGE_DOUBLE_SLEEP": "0.3"}
    at = ("--state-dir", str(place))
    started = json.loads(ratchet(slow, "daemon", "--background", *at, "--json").stdout)
    assert Path(started["socket"]).is_socket()
    second = ratchet(slow, "daemon", *at)
    assert (second.returncode, second.stderr.count("another daemon")) == (3, 1)
    run = json.loads(ratchet(slow, "run", "builtin:scan", "--session", "demo", *at, "--json").stdout)["run"]
    paused = json.loads(ratchet(slow, "pause", run[:12], *at, "--json").stdout)
    assert paused == {"run": run, "requested": "pause", "seq": paused["seq"]}
    assert json.loads(ratchet(slow, "nudge", run, "try SIMD", *at, "--json").stdout)["seq"] > paused["seq"]
    state = json.loads(ratchet(slow, "status", run, *at, "--json").stdout)["state"]
    assert state["status"] in ("draining", "paused")
    assert [n["text"] for n in state["nudges"]] == ["try SIMD"]
    assert ratchet(slow, "resume", run, *at).returncode == 0
    missed = ratchet(slow, "pause", "nope", *at)
    assert (missed.returncode, run in missed.stderr) == (2, True)
    unknown = ratchet(slow, "run", "builtin:scna", *at)
    assert (unknown.returncode, "did you mean builtin:scan?" in unknown.stderr) == (2, True)
    assert ratchet(slow, "stop", run, *at).returncode == 0
    told = ratchet(slow, "status", run, "--follow", *at)
    assert told.returncode == 0
    assert "run is ■ stopped" in told.stdout
    assert "queued: try SIMD" in told.stdout
    lines = ratchet(slow, "status", run, "--follow", "--json", *at).stdout.splitlines()
    assert [json.loads(row)["seq"] for row in lines] == list(range(1, len(lines) + 1))
    assert json.loads(lines[-1])["data"]["state"] == "stopped"
    listed = json.loads(ratchet(slow, "status", *at, "--json").stdout)["runs"]
    assert [(r["run"], r["status"]) for r in listed] == [(run, "stopped")]
