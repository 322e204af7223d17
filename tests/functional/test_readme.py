"""Every command of the README, run as it stands there; its links and its inline commands are checked too.

Shell blocks are run line by line in a directory that holds the README's own Python files and a small journal as
`attempts.jsonl`. What takes a whole demo or the whole test suite is run elsewhere and only has to be a target here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.console import scenario  # noqa: E402

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = {
    ".venv/bin/ratchet": [sys.executable, "-c", "from console.cli import main; main()"],
    ".venv/bin/python": [sys.executable],
}
MEASURING = ("check", "evaluate", "ab")
REFUSED = "ratchet run builtin:scan --model anthropic"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    return [words for row in block.splitlines() if (words := shlex.split(row, comments=True))]


def is_live(command: list[str]) -> bool:
    return any(other[1:] == ["daemon", "--background"] for block in map(commands, blocks("sh")) if command in block for other in block)


EVERY = [command for block in blocks("sh") for command in commands(block)]
MAKE = [c for c in EVERY if c[0] == "make"]
LIVE = [c for c in EVERY if is_live(c)]
MEASURED = [c for c in EVERY if c not in LIVE and any(word in MEASURING for word in c[1:4])]
READING = [c for c in EVERY if c not in (*MAKE, *LIVE, *MEASURED)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory as the README supposes it."""
    return furnish(tmp_path / "work")


def furnish(directory: Path) -> Path:
    directory.mkdir()
    for block in blocks("python"):
        name = block.splitlines()[0].removeprefix("# ")
        (directory / name).write_text(block, encoding="utf-8")
    scenario.write_journal(directory / "attempts.jsonl")
    return directory


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(home / "state")}


def start(command: list[str], place: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    program = PROGRAMS[command[0]]
    return subprocess.Popen(
        [*program, *command[1:]],
        cwd=place,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(command: list[str], place: Path, env: dict[str, str]) -> tuple[int, str]:
    with start(command, place, env) as process:
        try:
            out, said = process.communicate(timeout=300)
        finally:
            process.kill()
    assert "Traceback" not in out + said
    return process.returncode, out + said


def test_every_command_is_run_by_one_of_these_tests() -> None:
    assert len(EVERY) >= 20
    assert {c[0] for c in EVERY} == {"make", *PROGRAMS}
    assert len(MAKE) + len(LIVE) + len(MEASURED) + len(READING) == len(EVERY)
    assert [c[1] for c in MAKE] == ["demo", "test"]
    assert [block.splitlines()[0] for block in blocks("python")] == ["# softsign.py", "# candidate.py"]


@pytest.mark.parametrize(("command", "does"), [(MAKE[0], "ratchet demo"), (MAKE[1], "pytest")], ids=["demo", "test"])
def test_make_targets_exist_and_do_what_they_are_called(command: list[str], does: str) -> None:
    done = subprocess.run([*command[:1], "-n", *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert does in done.stdout
    assert "bubblewrap" in done.stdout


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_commands_that_read_end_well(command: list[str], place: Path, tmp_path: Path) -> None:
    code, said = run(command, place, environment(tmp_path))
    assert code == 0, said


def test_the_block_about_runs_works_from_top_to_bottom(place: Path, tmp_path: Path) -> None:
    """A real daemon; only its judge is a double, slow enough for the run to be under way."""
    (tmp_path / "judge").mkdir()
    judge = f"{sys.executable} {ROOT / 'tests' / 'functional' / 'judge_double.py'}"
    double = {"RATCHET_JUDGE": judge, "JUDGE_DOUBLE_DIR": str(tmp_path / "judge"), "JUDGE_DOUBLE_SLEEP": "3"}
    env = {**environment(tmp_path), **double, "RATCHET_LEASE_DIR": str(tmp_path / "lease")}
    attached: list[subprocess.Popen[str]] = []
    name = "RUN"
    try:
        for command in LIVE:
            words = [name if word == "RUN" else word for word in command]
            if "console" in words:
                attached.append(start(words, place, env))
                continue
            if words[1:] == ["daemon", "--stop"]:
                code, said = run([words[0], *shlex.split(REFUSED)[1:]], place, env)
                assert (code, "no model client `anthropic`" in said) == (3, True)
            code, said = run(words, place, env)
            assert code == 0, (words, said)
            if words[1] == "run":
                listed = run([words[0], "status", "--json"], place, env)[1]
                name = json.loads(listed)["runs"][0]["run"]
                assert name in said
    finally:
        run([".venv/bin/ratchet", "daemon", "--stop"], place, env)
    assert [process.communicate(timeout=60)[0].startswith("  +00:00  run ") for process in attached] == [True]


@pytest.mark.exclusive
def test_the_measuring_commands_take_the_readmes_own_problem(place: Path, tmp_path: Path) -> None:
    """One directory, so that headers are compiled once. Whether it is faster is this machine's affair."""
    assert [next(word for word in c if word in MEASURING) for c in MEASURED] == ["check", "evaluate", "ab", "check"]
    for command in MEASURED:
        code, said = run(command, place, environment(tmp_path))
        assert code == 0 or ("ab" in command and code == 1), said
        assert "all right" in said if "ab" in command else re.search(r"✓ ok|\"status\":\"ok\"", said), said


INLINE = sorted(set(re.findall(r"`(ratchet [a-z][^`]*)`", TEXT)))


@pytest.mark.parametrize("words", INLINE)
def test_commands_named_in_the_text_exist_with_their_options(words: str, tmp_path: Path) -> None:
    parts = [word.strip("[]") for word in words.split()[1:]]
    path = [word for word in parts[:2] if re.fullmatch(r"[a-z]+", word)]
    code, said = run([".venv/bin/ratchet", *path, "--help"], tmp_path, environment(tmp_path))
    assert code == 0, said
    for option in (word for word in parts if word.startswith("--")):
        assert f" {option} " in said


def test_what_is_refused_is_refused_in_the_readmes_words(place: Path, tmp_path: Path) -> None:
    code, said = run([".venv/bin/ratchet", "evaluate", "softsign.py", "candidate.py", "--device", "cuda"], place, environment(tmp_path))
    assert code == 3
    assert f"`{REFUSED}`" in TEXT
    words = "there is no CUDA device here"
    assert words in said
    assert words in TEXT


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(links) >= 3
    assert [link for link in links if not (ROOT / link).is_file()] == []


@pytest.mark.parametrize(("page", "at_least"), [("README.md", 2), ("CONTRIBUTING.md", 30)])
def test_files_named_in_the_pages_exist(page: str, at_least: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:problems|evaluator|state|agents|daemon|evidence|console|tests)/[\w/.]*)`", text)
    assert len(named) >= at_least
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_make_target_is_explained() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)[0].split()
    assert set(re.findall(r"`make ([a-z-]+)`", page)) | {"demo", "sandbox"} == set(targets)
