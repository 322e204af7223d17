"""However a judge ends, nothing of it goes on: no process, and where it can still act, no directory."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judge_samples import cache_directory, model, source, write_module

from evaluator.records import Job, JobKind, dumps

ROOT = Path(__file__).resolve().parents[2]
GONE_WITHIN_S = 30.0
pytestmark = pytest.mark.exclusive  # the candidate spins on a measuring core


@pytest.fixture
def busy(tmp_path, tmp_path_factory):
    """A judge whose candidate is in the middle of an endless call, in directories of its own."""
    job = Job(
        id="kernel|squash|e|1",
        kind=JobKind.CHECK,
        problem=str(write_module(tmp_path)),
        candidate=source(model("ext.spin(x)", "return x")),
        options={"timeout_s": 200},
    )
    (tmp_path / "job.json").write_text(dumps(job), encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "evaluator", "run", str(tmp_path / "job.json"), "--result", str(tmp_path / "result.json")]
    command += ["--cache", str(cache_directory(tmp_path_factory))]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        steps = iter(lambda: json.loads(process.stdout.readline() or '{"progress": {"step": "ended"}}')["progress"]["step"], "ended")
        assert "correctness" in steps, process.communicate()[1]
        yield process
    finally:
        process.kill()
        process.communicate()


def family(pid):
    """(pid, start) of every descendant; the start tells a number that was given again apart."""
    found = {int(p.name): stat(p) for p in Path("/proc").iterdir() if p.name.isdigit()}
    family, added = set(), {pid}
    while added:
        added = {child for child, fields in found.items() if fields and fields[0] in added}
        family |= {(child, found[child][1]) for child in added}
    return family


def stat(directory):
    """Parent and start time, or nothing where the process has ended."""
    try:
        data = (directory / "stat").read_bytes()
    except OSError:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else (int(fields[1]), int(fields[19]))


def alive(processes):
    return {(pid, start) for pid, start in processes if (found := stat(Path(f"/proc/{pid}"))) and found[1] == start}


def wait_for_a_whole_family(pid):
    """The trusted process, a guardian, bubblewrap and what runs inside."""
    deadline = time.monotonic() + 60
    while len(found := family(pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(found) >= 4
    return found


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGTERM, 143, ""),
        (signal.SIGINT, 130, "evaluator: stopped\n"),
    ],
    ids=["kill -9", "terminate", "ctrl-C"],
)
def test_nothing_of_a_judge_survives_it(busy, tmp_path, number, code, words):
    processes = wait_for_a_whole_family(busy.pid)
    busy.send_signal(number)
    _, stderr = busy.communicate(timeout=60)
    assert (busy.returncode, stderr) == (code, words)
    deadline = time.monotonic() + GONE_WITHIN_S
    while (left := alive(processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()
    assert not (tmp_path / "result.json").exists()
    if number != signal.SIGKILL:
        assert list((tmp_path / "tmp").iterdir()) == []


def test_a_judge_dies_with_its_parent(tmp_path, tmp_path_factory):
    starter = "import subprocess, sys\nprint(subprocess.Popen(sys.argv[1:], stdout=2).pid, flush=True)\nsys.stdin.read()\n"
    job = Job(
        id="1",
        kind=JobKind.CHECK,
        problem=str(write_module(tmp_path)),
        candidate=source(model("ext.spin(x)", "return x")),
        options={"timeout_s": 200},
    )
    (tmp_path / "job.json").write_text(dumps(job), encoding="utf-8")
    judge = [sys.executable, "-m", "evaluator", "run", str(tmp_path / "job.json"), "--result", str(tmp_path / "result.json")]
    judge += ["--cache", str(cache_directory(tmp_path_factory))]
    parent = subprocess.Popen(
        [sys.executable, "-c", starter, *judge],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pid = int(parent.stdout.readline())
        processes = wait_for_a_whole_family(pid) | {(pid, stat(Path(f"/proc/{pid}"))[1])}
    finally:
        parent.kill()
        parent.communicate()
    deadline = time.monotonic() + GONE_WITHIN_S
    while (left := alive(processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()
