"""What a job must be before anything is started for it, and job and result files."""

import dataclasses
import hashlib
import json

import pytest

from evaluator.devices.cpu.device import open_cpu
from evaluator.errors import EvaluatorError, UsageError
from evaluator.gate import imports_module
from evaluator.jobfile import read_job, require_place, write_result
from evaluator.judge.sense import require_sense
from evaluator.records import FORMAT_VERSION, Job, JobKind, Result, Source, Status, decode, dumps
from problems.registry import load

TEXT = "import torch\nclass ModelNew(torch.nn.Module): ...\n"


def source(text=TEXT):
    return Source(sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text=text)


@pytest.fixture(scope="module")
def problem():
    return load("builtin:scan")


def job(**changes):
    return dataclasses.replace(Job(id="kernel|scan|e|1", kind=JobKind.CHECK, problem="builtin:scan", candidate=source()), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cases": ("short",)},
        {"cases": ("long", "short")},
        {"kind": JobKind.FLOOR, "candidate": None},
        {"kind": JobKind.BASELINE, "candidate": None},
        {"kind": JobKind.AB, "champion": source("import torch\n")},
        {"candidate": source("import triton\n")},
        {"candidate": source("not Python at all (")},
        {"options": {"seeds": 1, "trials": 5, "pairs": 2, "timeout_s": 0.5, "quick": True, "naive": False, "gate": True}},
        {"options": {"floor": {"geomean": 0.02, "cases": {"short": 0.03}}}},
        {"options": {"floor": {"geomean": 1.5}}},
        {"options": {"floor": None}},
    ],
)
def test_what_makes_sense(problem, changes):
    assert require_sense(job(**changes), problem, open_cpu()) is None, "nothing is raised"


@pytest.mark.parametrize(
    ("changes", "words", "hint"),
    [
        ({"candidate": None}, "a job of kind check needs a candidate", "source"),
        ({"kind": JobKind.AB, "candidate": None}, "a job of kind ab needs a candidate", "source"),
        ({"cases": ("shrot",)}, "builtin:scan has no case 'shrot'", "its cases: short, long"),
        ({"cases": ()}, "builtin:scan has no case to run", "its cases: short, long"),
        ({"candidate": source("  \n")}, "the candidate: empty", "entry point"),
        ({"candidate": source("x = '\ud800'\n")}, "the candidate: not UTF-8", "UTF-8"),
        ({"candidate": source("#" * (1 << 20) + "\n")}, "the candidate: over 1 MiB", "generate"),
        ({"champion": source("")}, "the champion: empty", "entry point"),
        ({"candidate": Source(sha256="0" * 64, text=TEXT)}, "not the one that its sha256 names", "sha256"),
        ({"kind": JobKind.AB, "candidate": source("import triton\n")}, "the candidate is a Triton source", "GPU"),
        ({"kind": JobKind.FLOOR, "champion": source("from triton import jit\n")}, "the champion is a Triton source", "GPU"),
        ({"options": {"seed": 3}}, "unknown option 'seed'", "options: seeds, trials"),
        ({"options": {"trials": 0}}, "option trials is '0'", "whole number"),
        ({"options": {"trials": True}}, "option trials is 'True'", "whole number"),
        ({"options": {"seeds": 2.5}}, "option seeds is '2.5'", "whole number"),
        ({"options": {"timeout_s": float("inf")}}, "option timeout_s is 'inf'", "seconds"),
        ({"options": {"timeout_s": "9"}}, "option timeout_s is '9'", "seconds"),
        ({"options": {"gate": "off"}}, "option gate is 'off'", "true or false"),
        ({"options": {"floor": {"cases": {}}}}, "option floor", "geomean"),
        ({"options": {"floor": {"geomean": 0.1, "cases": {"short": "x"}}}}, "option floor", "geomean"),
    ],
)
def test_what_does_not(problem, changes, words, hint):
    with pytest.raises(UsageError) as caught:
        require_sense(job(**changes), problem, open_cpu())
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import triton\n", True),
        ("import triton.language as tl\n", True),
        ("from triton.language import load\n", True),
        ("def f():\n    import torch, triton\n", True),
        ("import torch._dynamo\n", False),
        ("import tritonic\n", False),
        ("from . import triton\n", False),
        ("from .triton import x\n", False),
        ("triton = 'import triton'\n", False),
    ],
)
def test_which_source_imports_a_module_itself(text, found):
    assert imports_module(text, "triton") is found


def test_a_job_file_is_read_back(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(dumps(job(options={"seeds": 2})), encoding="utf-8")
    assert read_job(path) == job(options={"seeds": 2})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"[1]", "is not a job"),
        (b"{}", "is not a job"),
        (json.dumps({"id": "1", "kind": "dance", "problem": "p"}).encode(), "dance"),
        (json.dumps({"id": 1, "kind": "check", "problem": "p"}).encode(), "Job.id"),
        (json.dumps({"id": "1", "kind": "check", "problem": "p", "candidate": "text"}).encode(), "Job.candidate"),
    ],
)
def test_a_file_that_is_no_job_is_named(tmp_path, raw, words):
    path = tmp_path / "job.json"
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=r"job\.json") as caught:
        read_job(path)
    assert words in caught.value.message


def test_a_missing_job_file(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_job(tmp_path / "none.json")


def test_a_job_of_a_newer_format_is_named_even_where_its_shape_is_new_too(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"v": FORMAT_VERSION + 1, "what": ["new"]}), encoding="utf-8")
    with pytest.raises(EvaluatorError) as caught:
        read_job(path)
    assert caught.value.message == f"the job is of format {FORMAT_VERSION + 1}, this evaluator knows {FORMAT_VERSION}"
    assert caught.value.hint == "update the evaluator on this host"


def test_a_result_is_there_whole_or_not_at_all(tmp_path):
    result = Result(job="1", kind=JobKind.CHECK, status=Status.OK)
    path = tmp_path / "result.json"
    path.write_text("before", encoding="utf-8")
    write_result(path, result)
    assert decode(Result, json.loads(path.read_text())) == result
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]
    broken = dataclasses.replace(result, wall_s=float("nan"))
    with pytest.raises(ValueError, match="non-finite"):
        write_result(path, broken)
    assert decode(Result, json.loads(path.read_text())) == result
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_place_that_cannot_take_the_result_is_refused_first(tmp_path):
    require_place(tmp_path / "result.json")
    for bad in (tmp_path / "none" / "result.json", tmp_path):
        with pytest.raises(UsageError, match="the result cannot be written"):
            require_place(bad)
