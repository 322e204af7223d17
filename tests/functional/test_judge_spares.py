"""Runners that are started ahead, with real sandboxes: stopped, on their cores, used once, and none left over."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluator.devices.cpu.device import open_cpu
from evaluator.judge.outcome import Infrastructure
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.spares import Spare, Spares
from evaluator.judge.workplace import MARK, PREFIX, workplace
from evaluator.records import Job, JobKind
from evaluator.sandbox.probe import require_sandbox
from problems.registry import load

pytestmark = pytest.mark.exclusive
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def setting(tmp_path):
    problem = load("builtin:scan")
    job = Job(id="kernel|builtin:scan|spares|1", kind=JobKind.CHECK, problem=problem.key)
    with Setting(job=job, problem=problem, device=open_cpu(), sandbox=require_sandbox(), cache=tmp_path, report=lambda _: None) as made:
        yield made


def threads(process):
    return [int(t) for t in os.listdir(f"/proc/{process.first_pid}/task")]


def state(process):
    return Path(f"/proc/{process.first_pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_expected_runners_start_together_and_stand_still_on_the_measuring_cores(setting):
    spares = setting.spares()
    spares.expect(3)
    first = spares.take()
    spares.settle()
    others = [spares.take(), spares.take()]
    assert len({s.process.first_pid for s in (first, *others)}) == 3
    for spare in (first, *others):
        assert spare.settled, "all three were started with the first"
        assert state(spare.process) == "T"
        assert {frozenset(os.sched_getaffinity(t)) for t in threads(spare.process)} == {frozenset(setting.device.cores.runners)}
        spare.close()


def test_what_is_written_later_is_seen_inside_and_belongs_to_one_runner_alone(setting):
    spares = setting.spares()
    spares.expect(2)
    one, other = (Runner(n, spares.take(), spares.settle, timeout_s=60) for n in ("one", "other"))
    (one.files / "candidate.py").write_text("import torch\nclass ModelNew(torch.nn.Module):\n    pass\n")
    one.load(path="/subject/candidate.py", entry="ModelNew", style="module", extensions=None)
    with pytest.raises(Exception, match=r"FileNotFoundError.*/subject/candidate\.py"):
        other.load(path="/subject/candidate.py", entry="ModelNew", style="module", extensions=None)
    one.close()
    other.close()


def test_one_that_nobody_took_ends_with_the_job(setting):
    spares = setting.spares()
    spares.expect(2)
    taken = spares.take()
    spares.settle()
    unused = spares._waiting[0].process
    taken.close()
    setting.stack.close()
    assert unused.members() == []


def test_a_runner_that_does_not_start_is_infrastructure_and_says_how_it_ended(setting, tmp_path):
    device = setting.device

    def launch(profile, descriptors, binds):
        started = setting._launch(profile, descriptors, binds)
        started.kill()
        return started

    with ExitStack() as stack:
        spare = Spare(launch, "run", tmp_path)
        stack.callback(spare.close)
        with pytest.raises(Infrastructure, match=r"a runner did not start: .*: it was stopped by the evaluator"):
            spare.settle(device)


def test_no_spare_is_started_where_none_is_expected(setting, tmp_path):
    started = []

    def launch(profile, descriptors, binds):
        started.append(profile)
        return setting._launch(profile, descriptors, binds)

    spares = Spares(launch, setting.device, tmp_path)
    spares.take().close()
    assert started == ["run"]
    spares.close()


def test_the_directory_of_a_killed_judge_is_swept_and_a_living_ones_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / f"{PREFIX}killed"
    killed.mkdir()
    (killed / MARK).touch()
    (killed / "candidate.py").touch()
    with workplace() as living:
        assert sorted(p.name for p in tmp_path.iterdir()) == [living.name]
        with workplace() as other:
            assert {p.name for p in tmp_path.iterdir()} == {living.name, other.name}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [f"{PREFIX}of-somebody-else", "ratchet-ask-1"])
def test_what_no_judge_made_is_never_swept_however_old(tmp_path, monkeypatch, name):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / name
    other.mkdir()
    (other / "result.json").touch()
    os.utime(other, (0, 0))
    with workplace():
        pass
    assert (other / "result.json").exists()


def test_a_killed_process_leaves_what_the_next_judge_sweeps(tmp_path, monkeypatch):
    program = f"""
import os, tempfile
tempfile.tempdir = {str(tmp_path)!r}
from evaluator.judge.workplace import workplace
with workplace():
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with workplace() as mine:
        assert list(tmp_path.iterdir()) == [mine]
