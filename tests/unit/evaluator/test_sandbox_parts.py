"""Parts of the sandbox that need no process."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import EnvironmentFault
from evaluator.sandbox import guardian, layout, probe
from evaluator.sandbox.command import Bind, Descriptors, command, environment
from evaluator.sandbox.limits import Limits
from evaluator.sandbox.output import Kept, sanitise

LAYOUT = layout.Layout(
    prefixes=(Path("/opt/env"),), masks=(Path("/opt/env/lib/evaluator"),), path=("/opt/env/lib",), python=Path("/opt/env/bin/python")
)


def vector(profile="run", **more):
    descriptors = Descriptors(filter=10, info=11, passwd=12, ready=13, user_map=more.pop("user_map", None))
    return command(bwrap=Path("/b"), profile=profile, argv=["/x.py", "a"], descriptors=descriptors, layout=LAYOUT, limits=Limits(), **more)


def pairs(line, option, count=1):
    return [tuple(line[i + 1 : i + 1 + count]) for i, word in enumerate(line) if word == option]


def test_the_environment_is_only_what_is_listed(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "abc")
    line = vector(env={"X": "1"})
    assert "--clearenv" in line
    assert dict(pairs(line, "--setenv", 2)) == environment({"X": "1"})
    assert set(environment({})) == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "LANG",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    }
    assert "abc" not in " ".join(line)


def test_namespaces_capabilities_and_one_process():
    line = vector()
    for option in (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--die-with-parent",
        "--new-session",
    ):
        assert option in line
    assert pairs(line, "--cap-drop") == [("ALL",)]
    assert "--as-pid-1" in line
    assert "--as-pid-1" not in vector("build")
    assert "--cap-add" not in line
    assert pairs(line, "--uid") == [("65534",)]


def test_ids_are_dropped_by_the_launcher_where_the_judge_is_root():
    line = vector(user_map=14)
    assert pairs(line, "--userns-block-fd") == [("14",)]
    assert '"ids":[65534,65534]' in line[-3]
    assert '"ids":null' in vector()[-3]


def test_masks_come_after_prefixes_and_everything_is_read_only_but_scratch():
    line = vector(binds=[Bind(source=Path("/in"), target="/in")])
    assert line.index("/opt/env") < line.index("/opt/env/lib/evaluator")
    assert not pairs(line, "--bind", 2)
    assert ("/in", "/in") in pairs(line, "--ro-bind", 2)
    assert pairs(line, "--remount-ro")[-2:] == [("/dev",), ("/",)]
    assert line[line.index("/scratch", line.index("--size")) - 1] == "--tmpfs"
    assert pairs(vector(binds=[Bind(source=Path("/o"), target="/out", writable=True)]), "--bind", 2) == [("/o", "/out")]


def test_outermost_drops_what_is_contained_and_what_usr_has():
    given_ = [Path(p) for p in ("/root/env", "/root/env/lib/site", "/usr/lib/python3", "/home/a/env", "/root/environment")]
    assert layout.outermost(given_) == (Path("/home/a/env"), Path("/root/env"), Path("/root/environment"))


def test_a_prefix_that_is_a_home_directory_is_refused(monkeypatch):
    monkeypatch.setattr(layout, "_interpreter_prefixes", lambda: [Path.home()])
    with pytest.raises(EnvironmentFault, match="would show too much") as caught:
        layout.current()
    assert "venv" in caught.value.hint


def test_our_packages_are_masked_where_they_are_installed(tmp_path, monkeypatch):
    site = tmp_path / "lib" / "site-packages"
    for name in ("evaluator", "state", "somebody_elses"):
        (site / name).mkdir(parents=True)
    (site / "evaluator" / "records").mkdir()
    marker = site / "evaluator" / "records" / "__init__.py"
    marker.touch()
    monkeypatch.setattr("sys.path", [str(site)])
    assert layout.masks([tmp_path]) == (site / "evaluator", site / "state")
    marker.unlink()
    assert layout.masks([tmp_path]) == (), "another distribution's packages of the same name stay"


def test_links_are_followed_one_by_one(tmp_path):
    (tmp_path / "real").touch()
    (tmp_path / "b").symlink_to("real")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    assert layout._links(tmp_path / "a") == [tmp_path / "a", tmp_path / "b", tmp_path / "real"]


def test_missing_bubblewrap_names_the_package(monkeypatch):
    monkeypatch.delenv("RATCHET_BWRAP", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentFault, match="not installed") as caught:
        probe.require_sandbox()
    assert caught.value.code == 3
    assert "apt-get install bubblewrap" in caught.value.hint


def test_the_variable_names_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("RATCHET_BWRAP", str(tmp_path / "none"))
    with pytest.raises(EnvironmentFault, match=f"not at {tmp_path}/none"):
        probe.find_bwrap()
    monkeypatch.setenv("RATCHET_BWRAP", "/bin/true")
    assert probe.find_bwrap() == Path("/bin/true").resolve()


def test_a_bubblewrap_that_may_not_make_namespaces_says_why(tmp_path):
    fake = tmp_path / "bwrap"
    refusal = 'echo "bwrap: No permissions to create new namespace" >&2; exit 1'
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo bubblewrap 9; exit 0; }}\n{refusal}\n')
    fake.chmod(0o755)
    with pytest.raises(EnvironmentFault, match="No permissions to create new namespace") as caught:
        probe.require_sandbox(fake)
    assert caught.value.code == 3
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "refusing", "mend"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
    ],
)
def test_the_sysctl_that_refuses_is_named(tmp_path, name, refusing, mend):
    file = tmp_path / name
    file.parent.mkdir()
    file.write_text(refusing + "\n")
    assert mend in probe.namespace_mend(tmp_path)
    file.write_text("1\n" if refusing == "0" else "0\n")
    assert "container" in probe.namespace_mend(tmp_path)


def test_output_is_cleaned():
    assert sanitise(b"\x1b[31mred\x1b[0m\x1b]0;title\x07 a\tb\r\nc\rd\x00\x08\xff") == "red a\tb\nc\nd\ufffd"
    assert sanitise("a\u202eb\u2066c\ufeffd\u0085e") == "abcde"


@given(st.binary(max_size=300))
def test_no_control_character_ever_leaves(data):
    assert all(c in "\n\t" or c.isprintable() or c.isspace() for c in sanitise(data))


def test_the_start_and_the_end_are_kept():
    kept = Kept(20)
    for part in (b"0123456789", b"x" * 1000, b"y" * 995, b"ABCDE"):
        kept.add(part)
    assert kept.total == 2010
    assert kept.text() == "0123456789\n[1990 bytes left out]\nyyyyyABCDE"


def test_what_fits_is_kept_whole():
    kept = Kept(20)
    kept.add(b"0123456789AB")
    kept.add(b"CD")
    assert kept.text() == "0123456789ABCD"


def test_the_guardian_starts_on_other_cores_than_its_own():
    before = os.sched_getaffinity(0)
    core = max(before)
    pid = guardian.spawn_on(str(core), ["/bin/sleep", "60"])
    try:
        assert os.sched_getaffinity(pid) == {core}
        assert os.sched_getaffinity(0) == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_no_address_space_limit_where_a_driver_reserves_it():
    assert "RLIMIT_AS" not in Limits(address_space_bytes=None).resources()
    assert Limits(address_space_bytes=5).resources()["RLIMIT_AS"] == 5
    assert Limits().resources()["RLIMIT_CORE"] == 0
