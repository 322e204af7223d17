"""Locks, sockets, the state directory, processes and configuration: the edges of the daemon."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tomllib
from pathlib import Path

import pytest
from daemon_waiting import eventually, spawn

from daemon import affinity, configuration, environment, places, processes
from daemon.errors import AlreadyRunning, BadRequest, SocketUnusable, StateUnusable
from daemon.listener import allowed, listening, peer_of
from daemon.locks import InstanceLock, read_note

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_lock_has_one_holder_and_names_it(tmp_path):
    path = tmp_path / "lock"
    with InstanceLock(path, what="the state directory") as lock:
        lock.note({"pid": 42, "socket": "/x"})
        with pytest.raises(AlreadyRunning, match=r"another daemon \(pid 42\) holds the state directory"):
            InstanceLock(path, what="the state directory")
    assert read_note(path) == {}
    InstanceLock(path, what="it").release()


def test_the_socket_is_private_and_goes_away(tmp_path):
    path = tmp_path / "run" / "r.sock"
    before = os.umask(0)
    try:
        with listening(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert os.umask(0) == 0, "the umask is as it was"
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_stale_socket_is_replaced_and_a_living_one_is_not(tmp_path):
    path = tmp_path / "r.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.exists()
    with listening(path) as bound:
        assert bound.getsockname() == str(path)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(path))
        alive.listen()
        with pytest.raises(AlreadyRunning, match="another program listens"), listening(path):
            pass
    assert path.exists()


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path):
    path = tmp_path / "r.sock"
    path.write_text("mine")
    with pytest.raises(SocketUnusable, match="not a socket"), listening(path):
        pass
    assert path.read_text() == "mine"


def test_a_socket_path_that_is_too_long_is_refused_with_the_limit(tmp_path):
    with pytest.raises(SocketUnusable, match="107 is the most"), listening(tmp_path / ("x" * 120)):
        pass


def test_the_peer_is_the_kernels_word():
    left, right = socket.socketpair()
    with left, right:
        peer = peer_of(left)
    assert (peer.pid, peer.uid) == (os.getpid(), os.getuid())
    assert allowed(peer)


def test_default_socket_prefers_the_runtime_directory_and_stays_short(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert places.default_socket(Path("/s")) == tmp_path / "ratchet" / "ratchet.sock"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert places.default_socket(Path("/s")) == Path("/s/ratchet.sock")
    long = places.default_socket(Path("/" + "d" * 200))
    assert len(os.fsencode(long)) <= places.SOCKET_PATH_LIMIT


def test_a_state_directory_of_a_newer_version_is_left_alone(tmp_path):
    (tmp_path / "format").write_text("99\n")
    with pytest.raises(StateUnusable, match="newer version \\(99"):
        places.prepare_state_dir(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["format"]


def test_a_state_directory_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnusable, match="cannot be written"):
        places.prepare_state_dir(tmp_path / "file" / "below")


def test_the_socket_of_a_running_daemon_is_found_by_its_state_directory(tmp_path):
    with InstanceLock(places.Places(tmp_path).lock, what="it") as lock:
        lock.note({"pid": 1, "socket": "/somewhere/r.sock"})
        assert places.find_socket(tmp_path) == Path("/somewhere/r.sock")
    assert places.find_socket(tmp_path) == places.default_socket(tmp_path)


def test_cores_are_split_like_the_judge_splits_them():
    assert affinity.plan(frozenset({3})).daemon == {3}
    two = affinity.plan(frozenset({0, 1}))
    assert (two.daemon, two.device) == ({0}, {1})
    many = affinity.plan(frozenset(range(12)))
    assert (many.daemon, many.device) == ({0, 1, 2, 3}, set(range(4, 12)))


def test_children_cannot_pose_as_the_service_and_see_no_key():
    given = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1", "LISTEN_FDS": "1", "ANTHROPIC_API_KEY": "k", "GH_TOKEN": "t", "PATH": "/bin"}
    assert environment.for_judge(given) == {"PATH": "/bin", "PYTHONUNBUFFERED": "1"}
    assert environment.without_service(given) == {"ANTHROPIC_API_KEY": "k", "GH_TOKEN": "t", "PATH": "/bin"}


def stat_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text()


def started_a_tick_earlier(stat: str) -> str:
    """The line with field 22, the start time in clock ticks (proc(5)), one lower: two processes may share a tick."""
    name, _, rest = stat.rpartition(")")
    fields = rest.split(" ")
    fields[20] = str(int(fields[20]) - 1)
    return f"{name}){' '.join(fields)}"


async def test_an_orphan_of_this_boot_is_ended_and_a_reused_pid_is_not(tmp_path):
    job = tmp_path / "job-1"
    job.mkdir()
    record = processes.record_path(job)
    orphan = spawn(processes.recording(SLEEP, record))
    await eventually(lambda: record.exists() and record.read_text().endswith("\n"))
    bystander = spawn(SLEEP)
    other = tmp_path / "job-2"
    other.mkdir()
    # The bystander's pid with another start time: what a reused pid looks like.
    processes.record_path(other).write_text(started_a_tick_earlier(stat_of(bystander.pid)))
    third = tmp_path / "job-3"
    third.mkdir()
    (third / "process-another-boot").write_text(stat_of(bystander.pid))
    assert await processes.end_orphans(tmp_path) == [orphan.pid]
    assert orphan.wait(5) == -15
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


async def test_a_group_whose_leader_is_gone_is_still_ended(tmp_path):
    record = processes.record_path(tmp_path / "job")
    record.parent.mkdir()
    fork = [sys.executable, "-c", f"import subprocess; subprocess.Popen({SLEEP!r})"]
    leader = spawn(processes.recording(fork, record))
    leader.wait(20)
    assert len(processes.members(leader.pid)) == 1
    assert await processes.end_orphans(tmp_path) == [leader.pid]
    assert processes.members(leader.pid) == []


def test_configuration_is_resolved_and_written_so_that_it_reads_back():
    settings = {"evaluation": {"ab": {"pairs": 30, "floor": {"a b": 0.5}}}, "agents": {"n": 2}}
    config = configuration.resolve(problem="builtin:scan", title='a "title" \\ with\nlines é', settings=settings)
    assert (config["run"]["problem"], config["agents"]["n"], config["agents"]["model"]) == ("builtin:scan", 2, "scripted")
    assert tomllib.loads(configuration.to_toml(config)) == config


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({"agent": {}}, "unknown table 'agent' in settings", "did you mean agents?"),
        ({"agents": {"workers": 1}}, "unknown key 'workers' in settings.agents", "did you mean"),
        ({"run": {"device": 3}}, "settings.run.device must be text", ""),
        ({"run": {"profile": "x"}}, "settings.run.profile is 'x'", "open, seed"),
        ({"evaluation": {"ab": 3}}, "settings.evaluation.ab must be a table", ""),
        ({"evaluation": 3}, "settings.evaluation must be a table", ""),
        ({"evaluation": {"qualification": "none"}}, "settings.evaluation.qualification is 'none'", "quick or full"),
    ],
)
def test_what_a_run_does_not_know_is_refused_with_the_mend(settings, message, hint):
    with pytest.raises(BadRequest) as caught:
        configuration.resolve(problem="p", settings=settings)
    assert message in caught.value.message
    assert hint in caught.value.hint
