import math

import pytest
import torch

from problems import execution, layout
from problems.comparison import compare
from problems.errors import BadProblem
from problems.gpumode import COMPATIBILITY

NAN, INF = math.nan, math.inf


def tensor(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def test_the_tolerance_is_absolute_plus_relative():
    expected = tensor(0.0, 100.0)
    assert compare(tensor(0.09, 100.9), expected, atol=0.1, rtol=0.01).ok
    outcome = compare(tensor(0.0, 101.2), expected, atol=0.1, rtol=0.01)
    assert not outcome.ok
    assert outcome.max_abs_error == pytest.approx(1.2, abs=1e-5)
    assert outcome.words == "1 of 2 elements wrong; at (1,): got 101.2, expected 100"


def test_the_worst_place_is_named_with_all_its_indices():
    expected = torch.zeros(2, 3, 4)
    wrong = expected.clone()
    wrong[1, 2, 3], wrong[0, 1, 0] = 5.0, 1.0
    outcome = compare(wrong, expected, atol=0.1, rtol=0.0)
    assert outcome == (False, 5.0, "2 of 24 elements wrong; at (1, 2, 3): got 5, expected 0")


@pytest.mark.parametrize(
    ("output", "expected", "ok"),
    [
        (tensor(1.0, NAN), tensor(1.0, 2.0), False),
        (tensor(1.0, INF), tensor(1.0, 2.0), False),
        (tensor(1.0, INF), tensor(1.0, INF), True),
        (tensor(1.0, -INF), tensor(1.0, INF), False),
        (tensor(1.0, NAN), tensor(1.0, NAN), True),
        (tensor(1.0, 3.0), tensor(1.0, NAN), False),
        (tensor(1.0, 3.0), tensor(1.0, INF), False),
        (tensor(NAN, NAN), tensor(NAN, NAN), False),
        (tensor(), tensor(), False),
        (tensor(1, 2, dtype=torch.int64), tensor(1, 2, dtype=torch.int64), True),
        (tensor(1, 3, dtype=torch.int64), tensor(1, 2, dtype=torch.int64), False),
        (tensor(True, False, dtype=torch.bool), tensor(True, True, dtype=torch.bool), False),
        (tensor(1.0), tensor(1.0, dtype=torch.float64), False),
        (tensor(1.0).unsqueeze(0), tensor(1.0), False),
        (tensor(1.0 + 2.0j, dtype=torch.complex64), tensor(1.0 + 2.0j, dtype=torch.complex64), True),
        (tensor(1.0 + 3.0j, dtype=torch.complex64), tensor(1.0 + 2.0j, dtype=torch.complex64), False),
        ((tensor(1.0), tensor(2.0)), (tensor(1.0), tensor(2.0)), True),
        ((tensor(1.0), tensor(3.0)), (tensor(1.0), tensor(2.0)), False),
        ((tensor(1.0),), (tensor(1.0), tensor(2.0)), False),
        (tensor(1.0), (tensor(1.0),), False),
        (None, tensor(1.0), False),
        ([1.0], tensor(1.0), False),
        (torch.nn.Parameter(tensor(1.0)), tensor(1.0), False),
        (tensor(1.0).to("meta"), tensor(1.0), False),
        (tensor(1.0).to_sparse(), tensor(1.0), False),
    ],
)
def test_what_passes_and_what_fails(output, expected, ok):
    outcome = compare(output, expected, atol=1e-6, rtol=0.0)
    assert outcome.ok is ok
    assert bool(outcome.words) is not ok


def test_a_large_error_next_to_an_infinite_reference_is_seen():
    outcome = compare(tensor(INF, 9.0), tensor(INF, 1.0), atol=0.1, rtol=0.1)
    assert (outcome.ok, outcome.max_abs_error) == (False, 8.0)


def test_a_subclass_that_answers_for_itself_is_refused():
    class Liar(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return torch.zeros(1, dtype=torch.bool)

    outcome = compare(tensor(1.0).as_subclass(Liar), tensor(1.0), atol=1.0, rtol=1.0)
    assert outcome == (False, None, "expected a torch.Tensor, got Liar")


def test_layouts_are_undone_by_join():
    data = (torch.ones(1), [2, None], {"k": ("text", 1.5), 3: ()})
    shape, leaves = layout.split(data, where="here")
    again = layout.join(shape, leaves)
    assert again[0] is data[0]
    assert again[1:] == data[1:]
    with pytest.raises(BadProblem, match="here: a value of type set"):
        layout.split((1, {2}), where="here")


def test_modules_of_a_problem_see_each_other_and_nothing_else_does():
    import sys

    texts = {"task.py": "N = 7\n", "reference.py": "from task import N\ndef late():\n    import task\n    return task.N + N\n"}
    assert execution.ModuleSet(texts, label="p").module("reference").late() == 14
    assert "task" not in sys.modules
    other = execution.ModuleSet({**texts, "task.py": "N = 1\n"}, label="p")
    assert other.module("reference").late() == 2


def test_modules_of_a_problem_have_sources_and_dataclasses():
    import inspect

    function = "def f():\n    return D().x\n"
    record = "@dataclasses.dataclass\nclass D:\n    x: int = 3\n\n"
    text = "from __future__ import annotations\nimport dataclasses\n" + record + function
    module = execution.ModuleSet({"reference.py": text}, label="p").module("reference")
    assert module.f() == 3
    assert inspect.getsource(module.f) == function


@pytest.fixture(scope="module")
def utils():
    texts = {"utils.py": (COMPATIBILITY / "utils.py").read_text(encoding="utf-8")}
    return execution.ModuleSet(texts, label="compatibility").module("utils")


def test_the_stand_in_has_the_names_that_references_import(utils):
    names = (
        "set_seed get_device verbose_allclose verbose_allequal match_reference make_match_reference DeterministicContext DisableCuDNNTF32"
    )
    assert all(callable(getattr(utils, name)) for name in (*names.split(), "clear_l2_cache", "clear_l2_cache_large"))


def test_the_stand_in_compares_and_fails_closed(utils):
    assert utils.verbose_allclose(tensor(1.0, INF), tensor(1.0, INF)) == []
    assert utils.verbose_allclose(tensor(1.0, 2.0), tensor(1.0, 2.1), rtol=0.1) == []
    assert utils.verbose_allclose(tensor(1.0, NAN), tensor(1.0, 2.0)) != []
    assert utils.verbose_allclose(tensor(), tensor()) != []
    assert "SIZE MISMATCH" in utils.verbose_allclose(tensor(1.0), tensor(1.0, 2.0))[0]
    assert utils.verbose_allclose(tensor(*[9.0] * 8), tensor(*[1.0] * 8), max_print=2) == [
        "Number of mismatched elements: 8",
        "ERROR AT (0,): 9.0 1.0",
        "ERROR AT (1,): 9.0 1.0",
        "... and 6 more mismatched elements.",
    ]
    assert utils.verbose_allequal(tensor(1, 2, dtype=torch.int32), tensor(1, 2, dtype=torch.int32)) == []
    assert utils.verbose_allequal(tensor(1, 2, dtype=torch.int32), tensor(1, 3, dtype=torch.int32)) != []
    assert utils.verbose_allclose(None, tensor(1.0)) == ["expected a tensor, got NoneType"]


def test_the_stand_in_matches_against_a_reference(utils):
    check = utils.make_match_reference(lambda data: data * 2, rtol=1e-3, atol=0.0)
    assert check(tensor(1.0), tensor(2.001)) == (True, "")
    ok, words = check(tensor(1.0), tensor(2.1))
    assert (ok, "does not match" in words) == (False, True)


def test_determinism_is_put_back_as_it_was(utils, monkeypatch):
    import os

    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    before = (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic)
    with utils.DeterministicContext():
        assert torch.are_deterministic_algorithms_enabled()
        assert (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic) == (False, True)
    assert not torch.are_deterministic_algorithms_enabled()
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic) == before
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    with utils.DisableCuDNNTF32():
        assert torch.backends.cudnn.deterministic
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic) == before


def test_the_stand_in_seeds_every_generator(utils):
    import random

    import numpy

    utils.set_seed(5)
    one = (random.random(), numpy.random.rand(), torch.rand(1).item())
    utils.set_seed(5)
    assert (random.random(), numpy.random.rand(), torch.rand(1).item()) == one
