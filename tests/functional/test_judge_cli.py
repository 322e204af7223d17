"""`python -m evaluator` as a process: job and result files, exit codes, and each kind of bad input in one or two lines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from judge_samples import HONEST, cache_directory, model, source, write_module

from evaluator.records import FORMAT_VERSION, Job, JobKind, Result, Status, decode, dumps
from problems.registry import load

ROOT = Path(__file__).resolve().parents[2]
FINE = "import torch\nclass ModelNew(torch.nn.Module): ...\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return cache_directory(tmp_path_factory)


@pytest.fixture
def evaluator(cache):
    """Run one command; what it prints is never a traceback."""

    def run(*arguments, **environment):
        command = [sys.executable, "-m", "evaluator", *map(str, arguments)]
        if arguments[0] != "--help":
            command += ["--cache", str(cache)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def candidate(tmp_path):
    path = tmp_path / "candidate.py"
    path.write_text(FINE, encoding="utf-8")
    return path


def write_job(folder, problem, text=HONEST, **changes):
    path = folder / "job.json"
    job = Job(id="kernel|squash|e|1", kind=JobKind.CHECK, problem=str(problem), candidate=source(text), options={"seeds": 1}, **changes)
    path.write_text(dumps(job), encoding="utf-8")
    return path


def test_a_job_file_becomes_a_result_file(evaluator, tmp_path):
    result_file = tmp_path / "out" / "result.json"
    result_file.parent.mkdir()
    done = evaluator("run", write_job(tmp_path, write_module(tmp_path)), "--result", result_file)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line)["progress"] for line in done.stdout.splitlines()]
    steps = [line["step"] for line in lines if line["step"] != "lease"]
    assert steps == ["integrity", "gate", "build", "correctness", "correctness"]
    assert {line["job"] for line in lines} == {"kernel|squash|e|1"}
    result = decode(Result, json.loads(result_file.read_text()))
    assert (result.status, result.job) == (Status.OK, "kernel|squash|e|1")
    assert result.evaluation.correct
    assert [p.name for p in result_file.parent.iterdir()] == ["result.json"]


def test_a_refused_candidate_is_a_result_too(evaluator, tmp_path):
    result_file = tmp_path / "result.json"
    done = evaluator("run", write_job(tmp_path, write_module(tmp_path), FINE.replace("New", "Old")), "--result", result_file)
    assert done.returncode == 0
    result = decode(Result, json.loads(result_file.read_text()))
    assert (result.status, result.message) == (Status.COMPILE_ERROR, "the source defines no `ModelNew`")


def test_a_problem_that_changed_since_its_hash_was_fixed(evaluator, tmp_path):
    problem = write_module(tmp_path)
    job = write_job(tmp_path, problem, problem_sha256=load(str(problem)).sha256)
    problem.write_text(problem.read_text().replace("* 2", "* 3"), encoding="utf-8")
    done = evaluator("run", job, "--result", tmp_path / "result.json")
    assert done.returncode == 3
    assert str(problem) in done.stderr
    assert "mend:" in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not (tmp_path / "result.json").exists()


def test_a_job_of_a_newer_format(evaluator, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"v": FORMAT_VERSION + 1}), encoding="utf-8")
    done = evaluator("run", path, "--result", tmp_path / "result.json")
    assert done.returncode == 1
    assert f"format {FORMAT_VERSION + 1}" in done.stderr
    assert "update the evaluator" in done.stderr


@pytest.mark.parametrize(("text", "words"), [("{", "is not JSON"), ("{}", "is not a job")], ids=["torn", "empty"])
def test_a_job_file_that_is_none(evaluator, tmp_path, text, words):
    path = tmp_path / "job.json"
    path.write_text(text, encoding="utf-8")
    done = evaluator("run", path, "--result", tmp_path / "result.json")
    assert done.returncode == 2
    assert words in done.stderr


def test_a_place_for_the_result_that_does_not_exist_is_found_at_once(evaluator, tmp_path):
    done = evaluator("run", write_job(tmp_path, "builtin:scan", FINE), "--result", tmp_path / "none" / "result.json")
    assert done.returncode == 2
    assert "the result cannot be written" in done.stderr
    assert done.stdout == ""


def test_an_unknown_problem_suggests_near_ones(evaluator, candidate):
    done = evaluator("check", "builtin:scna", candidate)
    assert done.returncode == 2
    assert "no problem 'builtin:scna'" in done.stderr
    assert "did you mean builtin:scan?" in done.stderr


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"# \xff\xfe\n", "not UTF-8 (byte 2)"),
        (b"#" * (10 << 20), "over 1 MiB"),
    ],
    ids=["empty", "blank", "not UTF-8", "10 MB"],
)
def test_a_candidate_that_is_no_source(evaluator, candidate, raw, words):
    candidate.write_bytes(raw)
    done = evaluator("check", "builtin:scan", candidate)
    assert done.returncode == 2
    assert f"candidate.py: {words}" in done.stderr
    assert "mend:" in done.stderr


def test_a_candidate_that_cannot_be_read(evaluator, tmp_path):
    for path, words in ((tmp_path / "none.py", "No such file"), (tmp_path, "Is a directory")):
        done = evaluator("check", "builtin:scan", path)
        assert done.returncode == 2
        assert words in done.stderr


def test_a_missing_bubblewrap_is_named_with_its_mend(evaluator, candidate):
    done = evaluator("check", "builtin:scan", candidate, RATCHET_BWRAP="/nonexistent")
    assert done.returncode == 3
    assert "bubblewrap is not at /nonexistent" in done.stderr
    assert "apt-get install bubblewrap" in done.stderr


def test_a_bubblewrap_without_namespaces_is_named(evaluator, candidate, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit 0\necho "No permissions to create new namespace" >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    done = evaluator("check", "builtin:scan", candidate, RATCHET_BWRAP=str(broken))
    assert done.returncode == 3
    assert "cannot make its namespaces here: No permissions" in done.stderr
    assert "mend:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--case", "none"), "builtin:scan has no case 'none'"),
        (("--trials", "-1"), "option trials is '-1'"),
        (("--profile", "none"), "invalid choice: 'none'"),
        (("--trials", "many"), "invalid int value"),
    ],
)
def test_what_makes_no_sense_is_named(evaluator, candidate, arguments, words):
    done = evaluator("evaluate", "builtin:scan", candidate, *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_another_device_is_not_measured_on(evaluator, candidate):
    done = evaluator("evaluate", "builtin:scan", candidate, "--device", "cuda:0")
    assert done.returncode == 3
    assert "--device cpu" in done.stderr


def test_by_hand_with_json_and_in_words(evaluator, candidate, tmp_path):
    problem = write_module(tmp_path)
    candidate.write_text(HONEST, encoding="utf-8")
    done = evaluator("check", problem, candidate, "--seeds", "1", "--json")
    assert done.returncode == 0, done.stderr
    *progress, last = map(json.loads, done.stdout.splitlines())
    assert {next(iter(line)) for line in progress} == {"progress"}
    assert decode(Result, last).status is Status.OK
    candidate.write_text(model("return ext.scaled(x, self.shift) + 1"), encoding="utf-8")
    done = evaluator("check", problem, candidate, "--seeds", "1")
    assert done.returncode == 1
    assert done.stdout.startswith("incorrect  case default, seed 1 of 1: ")
    assert "correctness case default" in done.stderr
