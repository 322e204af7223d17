"""The command line as a process: exit codes and messages of the design page, with and without --json."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.console import scenario  # noqa: E402

RATCHET = [sys.executable, "-c", "from console.cli import main; main()"]
NO_MODEL = "import torch\n\nclass Model(torch.nn.Module):\n    pass\n"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "attempts.jsonl"
    path.parent.mkdir()
    scenario.write_journal(path)
    return path


def ratchet(home: dict[str, str], *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RATCHET, *arguments], capture_output=True, text=True, env=home, timeout=timeout, check=False, stdin=subprocess.DEVNULL
    )


def assert_fails(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One or two lines on standard error, no traceback, this code, these words."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in done.stderr


def test_help_lists_every_command_in_plain_text(home: dict[str, str]) -> None:
    done = ratchet(home, "--help")
    assert done.returncode == 0
    for name in [
        "demo",
        "run",
        "status",
        "daemon",
        "console",
        "replay",
        "pause",
        "resume",
        "stop",
        "nudge",
        "evaluate",
        "check",
        "ab",
        "robustness",
        "floor",
        "baseline",
        "qualify",
        "doctor",
        "problems",
        "state",
        "verdict",
    ]:
        assert f"\n  {name} " in done.stdout
    assert "╭" not in done.stdout


def test_every_command_explains_itself_and_takes_json(home: dict[str, str]) -> None:
    from console.cli import assembly

    def leaves(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        children = getattr(command, "commands", None)
        return [path] if children is None else [leaf for name, child in children.items() for leaf in leaves(child, (*path, name))]

    def find(command: object, path: tuple[str, ...]) -> object:
        return find(command.commands[path[0]], path[1:]) if path else command

    root = assembly.command()
    found = leaves(root, ())
    assert len(found) == 26
    for path in found:
        command = find(root, path)
        assert command.help, path
        assert any("--json" in p.opts for p in command.params), path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], ["No such command 'frobnicate'"]),
        (["replay"], ["Missing argument 'FILE'", "ratchet replay --help"]),
        (["status", "--nope"], ["No such option", "--nope"]),
        (["evaluate", "builtin:scan", "x.py", "--trials", "many"], ["--trials"]),
        (["problems", "show", "builtin:scna"], ["no problem 'builtin:scna'", "did you mean builtin:scan?"]),
        (["problems", "show", "/no/such/file.py"], ["/no/such/file.py"]),
        (["replay", "/no/such/file"], ["/no/such/file"]),
        (["daemon", "--stop", "--background"], ["exclude each other"]),
        (["daemon", "--background", "--spool", "cuda:0"], ["'cuda:0' is not DEVICE=DIRECTORY", "cuda:0=/mnt/spool"]),
        (["daemon", "--stop", "--spool", "cpu=/mnt/spool"], ["--stop takes no --spool"]),
        (["demo", "--resume"], ["--state-dir"]),
        (["run", "builtin:scan", "--settings", "/no/such.toml"], ["/no/such.toml"]),
        (["run", "scan"], ["no problem 'scan'", "did you mean builtin:scan?"]),
        (["floor", "builtin:scan", "--case", "shrot"], ["has no case 'shrot' on cpu", "short, long"]),
        (["verdict", "show", "E2", "--journal", "{journal}"], ["no A/B verdict called 'E2'", "E1, E5, E6"]),
    ],
)
def test_usage_errors_exit_2(home: dict[str, str], journal: Path, arguments: list[str], words: list[str]) -> None:
    assert_fails(ratchet(home, *(a.format(journal=journal) for a in arguments)), 2, *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.py", b"", ["empty.py is empty", "ModelNew or custom_kernel"]),
        ("blank.py", b"\n  \n", ["blank.py is empty"]),
        ("latin.py", "# Größe".encode("latin-1"), ["latin.py is not UTF-8", "byte 4"]),
        ("big.py", b"#" * 10_000_000, ["big.py is over the limit of 1 MiB"]),
    ],
)
def test_unfit_candidate_files_exit_2(home: dict[str, str], tmp_path: Path, name: str, content: bytes, words: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert_fails(ratchet(home, "evaluate", "builtin:scan", str(path)), 2, *words)
    assert_fails(ratchet(home, "check", "builtin:scan", str(path)), 2, *words)


def test_a_missing_candidate_and_a_directory_exit_2(home: dict[str, str], tmp_path: Path) -> None:
    assert_fails(ratchet(home, "check", "builtin:scan", str(tmp_path / "none.py")), 2, "none.py: No such file")
    assert_fails(ratchet(home, "check", "builtin:scan", str(tmp_path)), 2, "is a directory")


@pytest.mark.parametrize("command", [["status"], ["pause", "x"], ["run", "builtin:scan"], ["console", "--plain"], ["daemon", "--stop"]])
def test_no_daemon_exits_4(home: dict[str, str], command: list[str]) -> None:
    assert_fails(ratchet(home, *command), 4, "no daemon answers", "ratchet daemon")


def test_errors_are_one_json_object_with_json(home: dict[str, str]) -> None:
    done = ratchet(home, "status", "--json")
    assert done.returncode == 4
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["message"].split(" on ")[0]) == (4, "no daemon answers")


def test_debug_shows_the_traceback(home: dict[str, str]) -> None:
    done = ratchet(home, "replay", "/no/such/file", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_an_empty_journal_holds_nothing_to_show(home: dict[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "attempts.jsonl"
    empty.write_bytes(b"")
    assert_fails(ratchet(home, "replay", str(empty), "--plain"), 2, "holds no complete record")
    assert ratchet(home, "state", "verify", str(empty)).returncode == 1


def test_an_empty_journal_gives_no_state(home: dict[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "attempts.jsonl"
    empty.write_bytes(b"")
    assert_fails(ratchet(home, "state", "rebuild", str(empty)), 2, "holds no complete record")


def test_a_journal_of_a_newer_version_is_shown_with_a_warning(home: dict[str, str], tmp_path: Path) -> None:
    line = {"v": 99, "seq": 1, "ts": "2027-01-14T09:00:00Z", "run": "r", "kind": "note", "actor": "daemon", "data": {}, "prev": "0" * 64}
    body = json.dumps(line, separators=(",", ":"))
    newer = tmp_path / "attempts.jsonl"
    newer.write_text(f'{body[:-1]},"hash":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n')
    done = ratchet(home, "replay", str(newer), "--plain")
    assert done.returncode == 0
    assert "written by a newer version (format 99)" in done.stderr
    assert "written by a newer version (99)" in ratchet(home, "state", "verify", str(newer)).stdout


def test_a_torn_journal_is_shown_as_far_as_it_is_whole(home: dict[str, str], journal: Path) -> None:
    whole = ratchet(home, "replay", str(journal), "--plain").stdout
    with journal.open("ab") as file:
        file.write(b'{"v":1,"seq":79,"ts":"2027')
    torn = ratchet(home, "replay", str(journal), "--plain")
    assert (torn.returncode, torn.stdout) == (0, whole)
    verified = json.loads(ratchet(home, "state", "verify", str(journal), "--json").stdout)
    assert (verified["ok"], verified["torn_bytes"], verified["records"]) == (True, 26, 78)


def test_one_changed_byte_is_found_and_its_line_named(home: dict[str, str], journal: Path) -> None:
    data = journal.read_bytes()
    where = data.index(b"Single-pass scan")
    line = data[:where].count(b"\n") + 1
    journal.write_bytes(data[:where] + b"s" + data[where + 1 :])
    assert_fails(ratchet(home, "replay", str(journal), "--plain"), 1, "damaged", f"line {line}")
    done = ratchet(home, "state", "verify", str(journal))
    assert done.returncode == 1
    assert f"line {line}" in done.stdout
    assert_fails(ratchet(home, "state", "rebuild", str(journal)), 1, f"line {line}")


def test_replay_prints_story_and_table(home: dict[str, str], journal: Path) -> None:
    done = ratchet(home, "replay", str(journal.parent), "--plain")
    assert done.returncode == 0
    story, table = done.stdout.split("\n\n")[:2]
    assert "+07:09  E4 evaluation ⊘ tampered" in story
    assert "credited 41.3×" in story
    assert "refused         1  E4 Remember the answer: ⊘ tampered, claimed 41.3×" in table
    assert "\x1b" not in done.stdout


def test_replay_json_is_the_summary_and_the_same_story(home: dict[str, str], journal: Path) -> None:
    found = json.loads(ratchet(home, "replay", str(journal), "--json").stdout)
    lines = ratchet(home, "replay", str(journal), "--plain").stdout.split("\n\n")[0].splitlines()
    assert [row.rstrip() for row in found["story"]] == lines
    assert found["predictions"] == {"made": 7, "reconciled": 3}
    assert found["speedup"] == 2.41
    assert [m["claimed_speedup"] for m in found["refused"]] == [41.3]


def test_state_rebuild_gives_the_state(home: dict[str, str], journal: Path) -> None:
    import msgspec

    from state.lines import read_records
    from state.reducer import fold

    found = json.loads(ratchet(home, "state", "rebuild", str(journal), "--json").stdout)
    assert found["state"] == msgspec.to_builtins(fold(read_records(journal)))


def test_verdict_show_draws_both_clocks(home: dict[str, str], journal: Path) -> None:
    done = ratchet(home, "verdict", "show", "E6", "--journal", str(journal))
    assert done.returncode == 0
    assert "decision ▲ faster" in done.stdout
    assert "not checked: memory checker" in done.stdout
    found = json.loads(ratchet(home, "verdict", "show", "E6", "--journal", str(journal), "--json").stdout)
    assert (found["experiment"], found["verdict"]["rho"]) == ("E6", 0.671)


def test_problems_are_listed_shown_and_verified(home: dict[str, str]) -> None:
    listed = json.loads(ratchet(home, "problems", "list", "--json").stdout)["problems"]
    assert "builtin:scan" in [p["problem"] for p in listed]
    shown = json.loads(ratchet(home, "problems", "show", "builtin:scan", "--json").stdout)
    assert "class Model" in shown["source"]
    verified = json.loads(ratchet(home, "problems", "verify", "--json").stdout)
    assert verified["ok"] is True
    assert len(verified["problems"]) == len(listed)


def test_doctor_names_what_is_missing_and_its_mend(home: dict[str, str], tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    done = ratchet({**home, "PATH": str(bare), "CXX": ""}, "doctor", "--json")
    found = {f["name"]: f for f in json.loads(done.stdout)["findings"]}
    assert done.returncode == 3
    assert (found["bubblewrap"]["ok"], found["bubblewrap"]["mend"]) == (False, "apt-get install bubblewrap")
    assert (found["compiler"]["ok"], found["user namespaces"]["ok"]) == (False, False)
    assert found["python"]["ok"] is True
    assert found["package names"]["ok"] is True
    lines = ratchet({**home, "PATH": str(bare), "CXX": ""}, "doctor").stdout
    assert "✗ missing bubblewrap       no bwrap\n           mend: apt-get install bubblewrap" in lines


def test_the_demo_needs_a_sandbox_and_says_so_before_it_starts(home: dict[str, str], tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    compiler = bare / "c++"
    compiler.write_text("#!/bin/sh\necho compiler 1.0\n")
    compiler.chmod(0o755)
    assert_fails(
        ratchet({**home, "PATH": str(bare)}, "demo", "--state-dir", str(tmp_path / "d")), 3, "bubblewrap", "apt-get install bubblewrap"
    )
    compiler.unlink()
    assert_fails(
        ratchet({**home, "PATH": str(bare)}, "demo", "--state-dir", str(tmp_path / "d")), 3, "compiler: no c++", "apt-get install g++"
    )
    assert not (tmp_path / "d").exists()


def test_doctor_sees_a_state_directory_that_cannot_be_written(home: dict[str, str], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    found = json.loads(ratchet(home, "doctor", "--state-dir", str(blocked / "state"), "--json").stdout)["findings"]
    assert next(f for f in found if f["name"] == "state directory")["ok"] is False


def test_importing_the_command_line_loads_nothing_heavy(home: dict[str, str]) -> None:
    program = "import sys, console.cli.assembly as a; a.command(); print(sorted({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=home, check=True)
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert not loaded & {"torch", "textual", "anthropic", "numpy", "scipy", "starlette", "uvicorn", "plotext", "textual_plotext"}


@pytest.mark.parametrize(
    ("sent", "code", "words"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")]
)
def test_a_signal_ends_the_judge_and_everything_it_started(
    home: dict[str, str], tmp_path: Path, sent: signal.Signals, code: int, words: str
) -> None:
    """A judge that started a process of its own: neither lives, no file is left, and after Ctrl-C the command says so."""
    judge = tmp_path / "judge.py"
    judge.write_text(
        "import subprocess, sys, time, os, json\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'])\n"
        "print(json.dumps({'progress': {'job': 'x', 'step': f'pids {os.getpid()} {child.pid}'}}), flush=True)\n"
        "time.sleep(600)\n"
    )
    candidate = tmp_path / "c.py"
    candidate.write_text(NO_MODEL)
    files = tmp_path / "tmp"
    files.mkdir()
    environment = {**home, "RATCHET_JUDGE": f"{sys.executable} {judge}", "TMPDIR": str(files)}
    command = [*RATCHET, "check", "builtin:scan", str(candidate)]
    # Whoever runs the tests may ignore hang-ups (nohup): the command is to see the signal as it is by default.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL if sent is not signal.SIGINT else signal.default_int_handler),
    ) as process:
        assert process.stderr is not None
        deadline = threading.Timer(60, process.kill)  # a judge that is not heard fails the test and does not hold it up
        deadline.start()
        pids = [int(word) for word in process.stderr.readline().split()[1:]]
        deadline.cancel()
        process.send_signal(sent)
        _, said = process.communicate(timeout=60)
    assert len(pids) == 2
    assert process.returncode == code
    assert words in said
    assert list(files.iterdir()) == []
    assert "Traceback" not in said
    deadline = time.monotonic() + 20
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if _alive(pid)] == []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_version_and_the_help_without_any_command(home: dict[str, str]) -> None:
    assert ratchet(home, "--version").stdout.startswith("ratchet 0.")
    bare = ratchet(home)
    assert (bare.returncode, bare.stdout) == (0, ratchet(home, "--help").stdout)


def test_an_output_that_takes_no_more_is_no_bug_of_ours(home: dict[str, str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*RATCHET, "problems", "list"], stdout=full, stderr=subprocess.PIPE, text=True, env=home, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: the output cannot be written: no space is left where it goes",
        "hint: make room there",
    ]


def test_an_output_without_unicode_gets_question_marks(home: dict[str, str]) -> None:
    done = ratchet({**home, "PYTHONIOENCODING": "ascii"}, "problems", "verify")
    assert done.returncode == 0
    assert done.stdout.startswith("? ok")


@pytest.fixture
def changed_copy(home: dict[str, str], tmp_path: Path) -> tuple[dict[str, str], Path]:
    """A copy of the program whose problems may be changed."""
    copy = tmp_path / "copy"
    for package in ("console", "problems", "evaluator", "state", "daemon", "agents"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    return {**home, "PYTHONPATH": str(copy)}, copy


def test_a_missing_built_in_is_noticed(changed_copy: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    place, copy = changed_copy
    (copy / "problems" / "builtin" / "mlp.py").unlink()
    done = subprocess.run([*RATCHET, "problems", "verify"], capture_output=True, text=True, env=place, cwd=tmp_path, check=False)
    assert done.returncode == 3
    assert "problems/builtin/mlp.py is missing" in done.stdout
    looked = subprocess.run([*RATCHET, "doctor"], capture_output=True, text=True, env=place, cwd=tmp_path, check=False)
    assert looked.returncode == 3
    assert "problems/builtin/mlp.py is missing" in looked.stdout


def test_one_changed_built_in_hides_no_other(changed_copy: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    place, copy = changed_copy
    changed = copy / "problems" / "builtin" / "mlp.py"
    changed.write_text(changed.read_text() + "\n")
    done = subprocess.run([*RATCHET, "problems", "list"], capture_output=True, text=True, env=place, cwd=tmp_path, check=False)
    assert done.returncode == 3
    assert "problems/builtin/mlp.py differs from MANIFEST.sha256" in done.stdout
    assert "builtin:scan" in done.stdout


def test_a_misspelt_file_is_answered_with_its_neighbour(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "softsign.py").write_text("x = 1\n")
    done = ratchet(home, "problems", "show", str(tmp_path / "softsgn.py"))
    assert_fails(done, 2, "no such file", f"did you mean {tmp_path / 'softsign.py'}?")
