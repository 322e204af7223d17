import subprocess
import sys

import pytest
from problem_samples import write_folder, write_module

from problems import registry
from problems.errors import BadProblem, ProblemChanged, UnknownProblem

KEYS = ["attention", "conv2d", "eigh", "gemm_epilogue", "gru_cell", "layer_norm", "long_sum", "mlp", "scan"]


def test_the_built_in_problems_are_the_nine_of_the_project():
    assert registry.builtin_keys() == [f"builtin:{name}" for name in KEYS]


@pytest.mark.parametrize("name", KEYS)
def test_every_built_in_has_cases_for_both_devices_and_sizes_around_them(name):
    problem = registry.load(f"builtin:{name}")
    assert problem.builtin
    assert len(problem.sha256) == 64
    for device in ("cpu", "cuda:0"):
        assert len(problem.cases(device)) >= 2
        assert all(case.size_class == "benchmark" for case in problem.cases(device))
        assert len(registry.robustness_cases(problem, device)) >= 2
    assert {case.size_class for case in registry.robustness_cases(problem, "cpu")} == {"smaller", "larger"}


def test_both_formats_are_among_the_built_ins():
    formats = {key: registry.load(key).format for key in registry.builtin_keys()}
    assert [key for key, kind in formats.items() if kind == "gpumode"] == ["builtin:eigh", "builtin:long_sum"]


def test_the_demo_problem_has_the_sizes_it_was_promised():
    problem = registry.load("builtin:scan")
    assert {case.name: dict(case.params) for case in problem.cases("cpu")} == {
        "short": {"batch": 2, "length": 1024, "features": 256},
        "long": {"batch": 1, "length": 4096, "features": 128},
    }
    assert (problem.atol, problem.rtol, problem.entry) == (1e-4, 1e-4, "ModelNew")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("builtin:scann", "builtin:scan"), ("gemm", "builtin:gemm_epilogue"), ("eig", "builtin:eigh"), ("layernorm", "builtin:layer_norm")],
)
def test_an_unknown_name_is_answered_with_near_ones(wrong, near):
    with pytest.raises(UnknownProblem) as caught:
        registry.load(wrong)
    assert caught.value.code == 2
    assert wrong in caught.value.message
    assert near in caught.value.hint


def test_a_name_like_no_other_is_answered_with_the_list():
    with pytest.raises(UnknownProblem) as caught:
        registry.load("/no/such/zzzzzzzz")
    assert "builtin:scan" in caught.value.hint


@pytest.mark.parametrize("text", ["", "builtin:", "builtin:../errors", "kernel:", "a\0b", "x" * 5000])
def test_odd_names_are_unknown_and_nothing_else(text):
    with pytest.raises(UnknownProblem):
        registry.load(text)


def test_a_path_works_wherever_a_key_does(tmp_path):
    module = write_module(tmp_path)
    problem = registry.load(str(module))
    assert (problem.key, problem.format, problem.builtin) == (str(module), "kernelbench", False)
    folder = write_folder(tmp_path)
    by_folder, by_file = registry.load(str(folder)), registry.load(str(folder / "task.yml"))
    assert by_folder == by_file
    assert by_folder.format == "gpumode"


def test_the_hash_fixed_at_the_start_is_checked_later(tmp_path):
    module = write_module(tmp_path)
    fixed = registry.load(str(module)).sha256
    assert registry.load(str(module), expected_sha256=fixed).sha256 == fixed
    module.write_text(module.read_text() + "# a remark\n")
    with pytest.raises(ProblemChanged) as caught:
        registry.load(str(module), expected_sha256=fixed)
    assert caught.value.code == 3


def test_every_file_of_a_folder_is_in_its_hash(tmp_path):
    folder = write_folder(tmp_path)
    (tmp_path / "utils.py").write_text("def make_match_reference(reference, **kwargs):\n    return lambda data, output: (True, '')\n")
    seen = {registry.load(str(folder)).sha256}
    for path in (folder / "task.yml", folder / "task.py", folder / "reference.py", tmp_path / "utils.py"):
        path.write_text(path.read_text() + "\n# changed\n")
        seen.add(registry.load(str(folder)).sha256)
    (folder / "ratchet.yml").write_text("title: Other\n")
    seen.add(registry.load(str(folder)).sha256)
    assert len(seen) == 6


def test_the_hash_does_not_depend_on_where_the_problem_lies(tmp_path):
    one, two = (write_module(tmp_path / name) for name in ("a", "b") if (tmp_path / name).mkdir() is None)
    assert registry.load(str(one)).sha256 == registry.load(str(two)).sha256


def test_a_solver_reads_the_reference_the_cases_and_the_tolerance():
    text = registry.source_text(registry.load("builtin:scan"))
    assert "weight = torch.exp(gate + self.bias)" in text
    assert "ModelNew" in text
    assert '# cpu benchmark short: {"batch": 2, "length": 1024, "features": 256}' in text
    assert "|error| <= 0.0001 + 0.0001 * |expected|" in text
    eigh = registry.source_text(registry.load("builtin:eigh"))
    assert "custom_kernel" in eigh
    assert "def check_implementation" in eigh
    assert "200 n eps" in eigh


def test_the_source_shown_is_the_source_fixed(tmp_path):
    module = write_module(tmp_path)
    problem = registry.load(str(module))
    module.write_text(module.read_text().replace("2 * x", "3 * x"))
    with pytest.raises(ProblemChanged):
        registry.source_text(problem)


def test_an_unknown_case_is_named_with_the_known_ones():
    with pytest.raises(BadProblem) as caught:
        registry.load("builtin:scan").case("cpu", "shrt")
    assert "short, long" in caught.value.hint


def test_describing_problems_never_loads_torch():
    code = (
        "import sys\n"
        "from problems import fitness, registry, suites, splits, workload, manifest\n"
        "for key in registry.builtin_keys():\n"
        "    problem = registry.load(key)\n"
        "    registry.source_text(problem), registry.robustness_cases(problem, 'cpu')\n"
        "print(sorted(set(sys.modules) & {'torch', 'numpy', 'triton'}))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
