"""The CPU as a device: which cores judge and which measure, and one lease a machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.devices import processor
from evaluator.devices.cpu.device import CpuDevice, open_cpu
from evaluator.devices.lease import DeviceLease
from evaluator.devices.opening import open_device
from evaluator.devices.processor import Cores
from evaluator.errors import EnvironmentFault, UsageError

HOLDER = """
import sys
from pathlib import Path
from evaluator.devices.lease import DeviceLease
with DeviceLease("cpu", waiting=lambda: print("waiting", flush=True), directory=Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("cores", "judge", "device"),
    [
        ({0, 1}, (0,), (1,)),
        ({3, 9}, (3,), (9,)),
        (range(4), (0,), (1, 2, 3)),
        (range(9), (0,), tuple(range(1, 9))),
        (range(12), (0, 1, 2, 3), tuple(range(4, 12))),
        (range(64), (0, 1, 2, 3), tuple(range(56, 64))),
    ],
)
def test_cores_are_split_between_judging_and_measuring(monkeypatch, cores, judge, device):
    monkeypatch.setattr(processor, "_all_cores", lambda: set(cores))
    found = open_cpu()
    assert (found.cores.judge, found.cores.runners) == (judge, device)
    assert not set(judge) & set(device)
    assert found.slots == 2


def test_one_core_cannot_be_timed_on(monkeypatch):
    monkeypatch.setattr(processor, "_all_cores", lambda: {0})
    with pytest.raises(EnvironmentFault, match="timing needs two cores") as caught:
        open_cpu()
    assert caught.value.code == 3
    assert "two cores" in caught.value.hint


@pytest.mark.exclusive
def test_a_pinned_parent_hides_no_core():
    before = os.sched_getaffinity(0)
    all_of_them = processor._all_cores()
    try:
        os.sched_setaffinity(0, {min(before)})
        assert processor._all_cores() == all_of_them
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


def test_context_names_the_device_and_its_state():
    found = CpuDevice(Cores(judge=(0,), runners=(1,))).context()
    assert (found["device"], found["judge_cores"], found["device_cores"]) == ("cpu", [0], [1])
    assert found["cpu"]
    assert len(found["load"]) == 3


def start(directory):
    return subprocess.Popen([sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_second_process_waits_until_the_first_lets_go(tmp_path):
    first, second = start(tmp_path), None
    try:
        assert first.stdout.readline() == "held\n"
        second = start(tmp_path)
        assert second.stdout.readline() == "waiting\n"
        assert second.poll() is None
        first.communicate()
        assert second.stdout.readline() == "held\n"
        second.communicate()
        assert (first.returncode, second.returncode) == (0, 0)
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.communicate()


def test_a_killed_holder_leaves_no_lease_behind(tmp_path):
    first = start(tmp_path)
    assert first.stdout.readline() == "held\n"
    first.kill()
    first.communicate()
    waited = []
    with DeviceLease("cpu", waiting=lambda: waited.append(time.monotonic()), directory=tmp_path):
        assert waited == []


def test_a_lease_is_by_device(tmp_path):
    with (
        DeviceLease("cuda:0", waiting=lambda: pytest.fail("waited"), directory=tmp_path),
        DeviceLease("cuda:1", waiting=lambda: pytest.fail("waited"), directory=tmp_path),
    ):
        assert sorted(p.name for p in tmp_path.iterdir()) == ["ratchet-device-cuda-0.lock", "ratchet-device-cuda-1.lock"]


def test_a_directory_for_temporary_files_makes_no_second_device(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert DeviceLease("cpu", waiting=lambda: None)._path == Path("/tmp/ratchet-device-cpu.lock")


def test_a_lock_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "ratchet-device-cpu.lock").symlink_to(tmp_path / "elsewhere")
    lease = DeviceLease("cpu", waiting=lambda: None, directory=tmp_path)
    with pytest.raises(EnvironmentFault, match=r"ratchet-device-cpu\.lock cannot be opened") as caught:
        lease.__enter__()
    assert caught.value.code == 3
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("name", "error", "code"), [("cuda:0", EnvironmentFault, 3), ("cdua", UsageError, 2), ("cpu:1", UsageError, 2), ("", UsageError, 2)]
)
def test_a_device_is_known_there_or_named(name, error, code):
    with pytest.raises(error) as caught:
        open_device(name)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    ("siblings", "judge", "runner"),
    [
        ({c: {c} for c in range(4)}, (0, 1, 2), (3,)),
        ({c: {c, c ^ 1} for c in range(16)}, (0, 2, 4), (14,)),
        ({c: {c % 8, c % 8 + 8} for c in range(16)}, (0, 1, 2), (7,)),
        ({c: {c, c ^ 1} for c in range(4)}, (0, 1, 2), (3,)),
    ],
)
def test_what_spins_has_a_physical_core_of_its_own(monkeypatch, siblings, judge, runner):
    monkeypatch.setattr(processor, "_all_cores", lambda: set(siblings))
    monkeypatch.setattr(processor, "_siblings", lambda core: siblings[core])
    found = processor.spinning_cores()
    assert (found.judge, found.runners) == (judge, runner)


def test_three_cores_cannot_time_a_device(monkeypatch):
    monkeypatch.setattr(processor, "_all_cores", lambda: {0, 1, 2})
    with pytest.raises(EnvironmentFault, match="needs four cores"):
        processor.spinning_cores()


@pytest.mark.parametrize(("cores", "building"), [({0, 1}, (0, 1)), (set(range(12)), (0, 1, 2, 3)), ({0, 1, 2}, (0, 1, 2))])
def test_compilers_keep_off_the_measuring_cores_where_there_are_others(monkeypatch, cores, building):
    monkeypatch.setattr(processor, "_all_cores", lambda: set(cores))
    assert processor.building_cores(processor.split_cores()) == building
