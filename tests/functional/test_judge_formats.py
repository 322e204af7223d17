"""Candidates for GPU MODE folders, built-in and a user's own, and problems that change under a run."""

import pytest
from judge_samples import HONEST, Judge, cache_directory, kernel, write_module

from evaluator.errors import UsageError
from evaluator.records import Status
from problems.errors import ProblemChanged
from problems.registry import load

TASK = """files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Add two vectors, one of them scaled.
tests:
  - {"size": 3, "seed": 1}
benchmarks:
  - {"size": 100, "seed": 3}
"""
REFERENCE = """import torch
from task import input_t, output_t
from utils import make_match_reference


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator()
    gen.manual_seed(seed)
    return torch.randn(size, generator=gen), {"b": torch.randn(size, generator=gen), "scale": 2.5}


def ref_kernel(data: input_t) -> output_t:
    a, more = data
    return a + more["scale"] * more["b"]


check_implementation = make_match_reference(ref_kernel, rtol=1e-5, atol=1e-6)
"""
ADDING = kernel("a, more = data", "return ext.weighted_sum(a, more['b'], more['scale'])")
SUMMING = kernel("x, centre, weight = data", "return ext.distance(x, centre, weight)")
DECOMPOSING = kernel("values, vectors = ext.decompose(data)", "return vectors, values")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return Judge(cache_directory(tmp_path_factory), "builtin:long_sum")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "adding"
    path.mkdir()
    for name, text in {"task.yml": TASK, "reference.py": REFERENCE, "task.py": "input_t = output_t = object\n"}.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def test_a_custom_kernel_of_a_built_in_folder(judge):
    result = judge("check", SUMMING, seeds=1)
    assert result.status is Status.OK, (result.message, result.log)
    assert [(c.case, c.correct) for c in result.evaluation.checks] == [("few_rows", True), ("many_rows", True)]
    assert result.problem == "builtin:long_sum"


def test_eigenvectors_are_judged_by_the_folders_own_check(judge):
    result = judge("check", DECOMPOSING, problem="builtin:eigh", cases=("n32_dense",), seeds=1)
    assert result.status is Status.OK, (result.message, result.log)
    assert [c.case for c in result.evaluation.checks] == ["n32_dense"]


@pytest.mark.slow
def test_wrong_eigenvectors_are_incorrect(judge):
    swapped = kernel("values, vectors = ext.decompose(data)", "return vectors, values.flip(-1)")
    result = judge("check", swapped, problem="builtin:eigh", cases=("n32_dense",), seeds=1)
    assert result.status is Status.INCORRECT, result.message
    assert "case n32_dense, seed 1 of 1" in result.message


@pytest.mark.slow
def test_one_output_where_two_are_declared_is_incorrect(judge):
    result = judge("check", kernel("return ext.decompose(data)[0]"), problem="builtin:eigh", cases=("n32_dense",), seeds=1)
    assert (result.status, result.message) == (Status.INCORRECT, "expected 2 outputs, got Tensor")


def test_a_users_own_folder(judge, folder):
    assert load(str(folder)).format == "gpumode"
    result = judge("check", ADDING, problem=str(folder), seeds=1)
    assert result.status is Status.OK, (result.message, result.log)
    wrong = judge("check", ADDING.replace("more['scale']", "2.0"), problem=str(folder), seeds=1)
    assert wrong.status is Status.INCORRECT


def test_a_module_answer_to_a_folder_is_named(judge):
    result = judge("check", HONEST)
    assert result.status is Status.COMPILE_ERROR
    assert result.message == "the source defines no `custom_kernel`"


@pytest.mark.parametrize("name", ["reference.py", "task.yml", "task.py"])
def test_a_folder_that_changes_after_its_hash_was_fixed(judge, folder, name):
    fixed = load(str(folder)).sha256
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("\n# more\n")
    with pytest.raises(ProblemChanged, match="adding"):
        load(str(folder), expected_sha256=fixed)


def test_a_reference_that_raises_is_never_the_candidates_fault(judge, tmp_path):
    path = write_module(tmp_path)
    path.write_text(path.read_text().replace("return torch.tanh(x)", "return torch.nothing(x)"), encoding="utf-8")
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "nothing" in text)
    with pytest.raises(UsageError, match=rf"the problem's own code failed: squash\.py, line {line}: AttributeError: .*'nothing'"):
        judge("check", HONEST, problem=str(path), seeds=1)
