import json

import pytest
import torch
from problem_samples import MODULE, REFERENCE, SIDECAR, TASK, write_folder, write_module

from problems import fitness, layout, registry, workload
from problems.errors import BadProblem, ProblemChanged


def open_path(path):
    return workload.open_workload(registry.load(str(path)), "cpu")


def test_a_module_without_a_sidecar_has_one_case_of_its_own_size(tmp_path):
    work = open_path(write_module(tmp_path))
    (case,) = work.cases()
    assert (case.name, dict(case.params), work.robustness_cases()) == ("default", {}, [])
    (x,) = work.inputs(case, 1)
    model = work.reference(case, 2)
    assert x.shape == (3, 5)
    assert torch.equal(model(x), 2 * x + model.state_dict()["shift"])
    assert not model(x).requires_grad
    assert work.call_style == "module"
    assert work.data_layout(case) == {"tuple": [{"leaf": 0}]}
    assert (work.refresh(case, (x,), 3), work.writable_inputs(case), work.candidate_files()) == (None, (), {})


def test_a_sidecar_sets_sizes_also_where_others_derive_from_them(tmp_path):
    work = open_path(write_module(tmp_path, sidecar=SIDECAR))
    problem = work.problem
    assert (problem.title, problem.atol, problem.rtol, problem.parameters_constant) == ("Shifted double", 1e-5, 1e-6, True)
    shapes = {case.name: tuple(work.inputs(case, 1)[0].shape) for case in (*work.cases(), *work.robustness_cases())}
    assert shapes == {"base": (7, 5), "tiny": (1, 2), "big": (20, 5)}
    tiny = problem.case("cpu", "tiny")
    assert (work.init_args(tiny), work.constants(tiny)) == ([2], {"rows": 1, "features": 2})
    text = work.runner_files(tiny)["reference.py"]
    assert "rows = 1\nfeatures = 2\n" in text
    assert work.runner_files() == {"reference.py": MODULE}
    assert [case.name for case in problem.cases("cuda")] == ["default"]


def test_a_module_may_bring_its_own_refresh(tmp_path):
    text = MODULE + "\n\ndef refresh_inputs(inputs, seed):\n    return [inputs[0] * seed]\n"
    work = open_path(write_module(tmp_path, text))
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    assert torch.equal(work.refresh(case, inputs, 3)[0], inputs[0] * 3)


def test_a_file_changed_between_load_and_use_is_found(tmp_path):
    path = write_module(tmp_path)
    problem = registry.load(str(path))
    path.write_text(MODULE.replace("2 * x", "3 * x"))
    with pytest.raises(ProblemChanged):
        workload.open_workload(problem, "cpu")


def test_the_judged_tolerance_is_the_declared_one(tmp_path):
    work = open_path(write_module(tmp_path, sidecar=SIDECAR))
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    assert work.check(case, inputs, expected + 0.8e-5, expected).ok
    assert not work.check(case, inputs, expected + 1.0e-4, expected).ok


def test_a_folder_gives_nested_data_from_the_callers_seed(tmp_path):
    work = open_path(write_folder(tmp_path))
    (case,) = work.cases()
    assert (case.name, [c.name for c in work.robustness_cases()]) == ("size100", ["size3", "size4_flat", "size4_flat_2"])
    inputs = work.inputs(case, 5)
    assert [type(leaf).__name__ for leaf in inputs] == ["Tensor", "Tensor", "float", "Tensor"]
    shape = work.data_layout(case)
    assert json.loads(json.dumps(shape)) == shape
    data = layout.join(shape, inputs)
    assert torch.equal(data[1]["b"], inputs[1])
    assert data[1]["scale"] == 2.0
    assert torch.equal(work.reference(case, 1)(*inputs), inputs[0] + 2 * inputs[1])
    assert not torch.equal(inputs[0], work.inputs(case, 6)[0])
    assert (work.init_args(case), work.constants(case), work.call_style) == ([], {}, "data")


def test_a_test_with_the_sizes_of_a_benchmark_has_a_name_of_its_own(tmp_path):
    task = TASK.replace('{"size": 3, "seed": 1}', '{"size": 100, "seed": 9}')
    problem = registry.load(str(write_folder(tmp_path, task=task)))
    assert [c.name for c in problem.cases_by_device["cpu"]] == ["size100", "size100_2", "size4_flat", "size4_flat_2"]


def test_a_buffer_that_comes_uninitialised_may_be_written(tmp_path):
    work = open_path(write_folder(tmp_path))
    assert work.writable_inputs(work.cases()[0]) == (3,)


def test_an_input_that_the_reference_writes_may_be_written(tmp_path):
    text = REFERENCE.replace('torch.empty(size, device="cuda")', 'torch.zeros(size, device="cuda")').replace(
        'return a + more["scale"] * more["b"]', '_[...] = a + more["scale"] * more["b"]\n    return _'
    )
    work = open_path(write_folder(tmp_path, reference=text))
    assert work.writable_inputs(work.cases()[0]) == (3,)


def test_a_missing_utils_is_replaced_and_a_present_one_is_used(tmp_path):
    folder = write_folder(tmp_path)
    work = open_path(folder)
    assert "Stand-in" in work.runner_files()["utils.py"]
    own = "def make_match_reference(reference, **kwargs):\n    return lambda data, output: (False, 'never')\n"
    (tmp_path / "utils.py").write_text(own)
    work = open_path(folder)
    assert work.runner_files()["utils.py"] == own
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    assert work.check(case, inputs, expected, expected) == (False, None, "never")


def test_a_candidate_may_import_task_and_utils_but_not_the_reference(tmp_path):
    work = open_path(write_folder(tmp_path))
    assert sorted(work.candidate_files()) == ["task.py", "utils.py"]
    assert sorted(work.runner_files()) == ["reference.py", "task.py", "utils.py"]
    assert "'cpu'" in work.runner_files()["reference.py"]


ANSWERS = {
    "pair": ("return True, 'fine'", True),
    "pair no": ("return False, 'no'", False),
    "bool": ("return True", True),
    "bool no": ("return False", False),
    "empty words": ("return ''", True),
    "words": ("return 'differs'", False),
    "none": ("return None", False),
    "number": ("return 1", False),
    "raises": ("raise ValueError('x')", False),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_form_of_answer_of_the_field_is_read(tmp_path, name):
    body, ok = ANSWERS[name]
    text = REFERENCE.split("check_implementation =")[0] + f"def check_implementation(data, output):\n    {body}\n"
    work = open_path(write_folder(tmp_path, reference=text))
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    outcome = work.check(case, inputs, expected, expected)
    assert outcome.ok is ok
    assert bool(outcome.words) is not ok


def test_a_check_that_says_yes_does_not_pass_nan_another_shape_or_nothing(tmp_path):
    text = REFERENCE.split("check_implementation =")[0] + "def check_implementation(data, output):\n    return True, ''\n"
    work = open_path(write_folder(tmp_path, reference=text))
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    assert work.check(case, inputs, expected, expected).ok
    for output in (expected * float("nan"), expected[:-1], (expected, expected), None, torch.nn.Parameter(expected)):
        assert not work.check(case, inputs, output, expected).ok
    assert not work.check(case, inputs, expected[:0], expected[:0]).ok


def test_a_check_cannot_change_what_is_compared_later(tmp_path):
    text = REFERENCE.split("check_implementation =")[0] + (
        "def check_implementation(data, output):\n    data[0].zero_()\n    output.zero_()\n    return True, ''\n"
    )
    work = open_path(write_folder(tmp_path, reference=text))
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    kept = (inputs[0].clone(), expected.clone())
    assert work.check(case, inputs, expected, expected).ok
    assert torch.equal(inputs[0], kept[0])
    assert torch.equal(expected, kept[1])


def test_a_folders_sidecar_gives_cpu_cases_and_a_tolerance(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "ratchet.yml").write_text("title: Adding\natol: 1.0e-6\nrtol: 1.0e-6\ncpu: {benchmarks: {few: {size: 6, seed: 1}}}\n")
    work = open_path(folder)
    assert (work.problem.title, [c.name for c in work.cases()]) == ("Adding", ["few"])
    assert [c.name for c in work.problem.cases("cuda")] == ["size100"]
    (case,) = work.cases()
    inputs = work.inputs(case, 1)
    expected = work.reference(case, 1)(*inputs)
    outcome = work.check(case, inputs, expected + 5e-7, expected)
    assert outcome.ok
    assert 4e-7 < outcome.max_abs_error < 6e-7
    assert not work.check(case, inputs, expected + 1e-4, expected).ok


def test_data_that_cannot_be_taken_apart_is_a_bad_problem(tmp_path):
    text = REFERENCE.replace('return a, {"b": b, "scale": 2.0}', 'return a, {"b": b, "scale": torch.nn.Linear(1, 1)}')
    work = open_path(write_folder(tmp_path, reference=text))
    with pytest.raises(BadProblem, match="Linear"):
        work.inputs(work.cases()[0], 1)


def test_a_generator_that_fails_names_case_and_mend(tmp_path):
    text = REFERENCE.replace("gen.manual_seed(seed)", "gen.manual_seed(seed)\n    size = -size")
    work = open_path(write_folder(tmp_path, reference=text))
    with pytest.raises(BadProblem) as caught:
        work.inputs(work.cases()[0], 1)
    assert "'size': 100" in caught.value.message
    assert "ratchet.yml" in caught.value.hint


@pytest.mark.parametrize("key", registry.builtin_keys())
def test_every_built_in_benchmark_is_fit(key):
    work = workload.open_workload(registry.load(key), "cpu")
    for case in work.cases():
        assert fitness.unfit_reason(work, case, seed=21) is None


UNFIT = {
    "zeros": ("2 * x + self.shift", "x * 0 + 1e-7 * x", "all zeros"),
    "constant": ("2 * x + self.shift", "x * 0 + 1.0", "the mean everywhere"),
    "weights only": ("2 * x + self.shift", "x * 0 + self.shift", "the mean over rows"),
    "copy": ("2 * x + self.shift", "x * 1.0", "a copy of input 0"),
    "random": ("2 * x + self.shift", "torch.rand_like(x)", "does not agree with itself"),
    "other rows": ("2 * x + self.shift", "x * 0 + torch.arange(3.0).unsqueeze(1) + self.shift", "other inputs"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_problem_that_takes_trivial_answers_is_unfit(tmp_path, name):
    old, new, words = UNFIT[name]
    work = open_path(write_module(tmp_path, MODULE.replace(old, new)))
    reason = fitness.unfit_reason(work, work.cases()[0], seed=1)
    assert reason is not None
    assert words in reason
