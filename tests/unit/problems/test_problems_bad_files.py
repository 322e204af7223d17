import os

import pytest
from problem_samples import MODULE, REFERENCE, SIDECAR, TASK, write_folder, write_module

from problems import registry, workload
from problems.errors import BadProblem, UnknownProblem

BAD_MODULES = {
    "empty": (b"  \n", "is empty", "KernelBench"),
    "not utf-8": (b"x = '\xff\xfe'\n", "not UTF-8", "UTF-8"),
    "syntax": (b"import torch\nclass Model(\n", "line 2", "syntax"),
    "nul": (b"x = 1\0", "not valid Python", "syntax"),
    "no model": (MODULE.replace("class Model(", "class Other(").encode(), "defines no Model", "get_init_inputs"),
    "no inputs": (MODULE.replace("def get_inputs", "def inputs").encode(), "defines no get_inputs", "Model"),
    "huge": (b"# " + b"x" * (1 << 20), "more than 1 MiB", "text"),
}


@pytest.mark.parametrize("name", BAD_MODULES)
def test_a_bad_module_is_refused_with_what_where_and_the_mend(tmp_path, name):
    raw, words, mend = BAD_MODULES[name]
    path = tmp_path / "bad.py"
    path.write_bytes(raw)
    with pytest.raises(BadProblem) as caught:
        registry.load(str(path))
    assert caught.value.code == 2
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert mend in caught.value.hint


def test_a_missing_path_is_unknown(tmp_path):
    with pytest.raises(UnknownProblem):
        registry.load(str(tmp_path / "nothing.py"))


def test_a_pipe_is_refused_without_reading_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(BadProblem, match="not a regular file"):
        registry.load(str(tmp_path / "pipe.py"))


def test_a_file_that_is_no_python_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(BadProblem, match="not a Python module"):
        registry.load(str(tmp_path / "notes.txt"))


def test_a_folder_without_task_yml_is_refused(tmp_path):
    with pytest.raises(BadProblem) as caught:
        registry.load(str(tmp_path))
    assert "has no task.yml" in caught.value.message
    assert "reference.py" in caught.value.hint


BAD_TASKS = {
    "yaml": (TASK + "tests: [\n", "not valid YAML"),
    "list": ("- 1\n", "expected a mapping"),
    "no benchmarks": (TASK.split("benchmarks")[0], "no benchmarks"),
    "language": (TASK.replace('"py"', '"cu"'), "lang is 'cu'"),
    "several devices": (TASK + "multi_gpu: true\n", "several GPUs"),
    "argument": (TASK.replace('"size": 100', '"sise": 100'), "takes no 'sise'"),
    "file name": (TASK.replace('"name": "task.py"', '"name": "../task.py"'), "not a plain file name"),
    "spec": (TASK.replace('{"size": 100, "seed": 3}', "7"), "expected a mapping"),
    "python tag": (TASK + "x: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_bad_task_is_refused(tmp_path, name):
    task, words = BAD_TASKS[name]
    with pytest.raises(BadProblem) as caught:
        registry.load(str(write_folder(tmp_path, task=task)))
    assert words in caught.value.message
    assert caught.value.hint


def test_a_task_without_its_reference_is_refused(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "reference.py").unlink()
    with pytest.raises(BadProblem, match=r"reference\.py does not exist"):
        registry.load(str(folder))


def test_a_reference_without_its_functions_is_refused(tmp_path):
    with pytest.raises(BadProblem, match="defines no check_implementation"):
        registry.load(str(write_folder(tmp_path, reference=REFERENCE.split("check_implementation =")[0])))


BAD_SIDECARS = {
    "key": (SIDECAR.replace("rtol", "rtoll"), "unknown key 'rtoll'", "'rtol'"),
    "tolerance": (SIDECAR.replace("1e-5", "small"), "atol is 'small'", "1.0e-4"),
    "negative": (SIDECAR.replace("1e-5", "-1"), "atol is -1", "1.0e-4"),
    "parameters": (SIDECAR.replace("constant", "maybe"), "parameters is 'maybe'", "vary"),
    "constant": (SIDECAR.replace("rows: 7", "lines: 7"), "no constant 'lines'", "rows"),
    "twice": (SIDECAR.replace("tiny", "base"), "same name", "own name"),
    "group": (SIDECAR.replace("larger", "bigger"), "expected benchmarks, smaller, larger", "mapping"),
    "value": (SIDECAR.replace("rows: 7", "rows: 2024-01-01"), "only numbers", "plain"),
}


@pytest.mark.parametrize("name", BAD_SIDECARS)
def test_a_bad_sidecar_is_refused(tmp_path, name):
    text, words, mend = BAD_SIDECARS[name]
    with pytest.raises(BadProblem) as caught:
        registry.load(str(write_module(tmp_path, sidecar=text)))
    assert words in caught.value.message
    assert mend in caught.value.hint


BROKEN_CODE = {
    "import": ("import no_such_module_anywhere\n" + MODULE, "ModuleNotFoundError"),
    "inputs": (MODULE.replace("torch.randn(*shape)]", "torch.randn(-1)]"), r"get_inputs\(\) raised RuntimeError"),
    "kind": (MODULE.replace("return [torch.randn(*shape)]", "return torch.randn(3)"), "returned Tensor"),
    "nested": (MODULE.replace("[torch.randn(*shape)]", "[[torch.randn(*shape)]]"), "nested inputs"),
    "object": (MODULE.replace("[torch.randn(*shape)]", "[nn.Linear(1, 1)]"), "a value of type Linear"),
}


@pytest.mark.parametrize("name", BROKEN_CODE)
def test_code_that_fails_when_it_runs_is_a_bad_problem(tmp_path, name):
    text, words = BROKEN_CODE[name]
    work = workload.open_workload(registry.load(str(write_module(tmp_path, text))), "cpu")
    with pytest.raises(BadProblem, match=words):
        work.inputs(work.cases()[0], 1)


def test_arguments_that_are_no_plain_values_are_refused(tmp_path):
    text = MODULE.replace("return [features]", "return [torch.device('cpu')]")
    work = workload.open_workload(registry.load(str(write_module(tmp_path, text))), "cpu")
    with pytest.raises(BadProblem, match="get_init_inputs"):
        work.init_args(work.cases()[0])


def test_a_model_that_cannot_be_built_is_a_bad_problem(tmp_path):
    text = MODULE.replace("return [features]", "return [features, 1]")
    work = workload.open_workload(registry.load(str(write_module(tmp_path, text))), "cpu")
    with pytest.raises(BadProblem, match="raised TypeError"):
        work.reference(work.cases()[0], 1)
