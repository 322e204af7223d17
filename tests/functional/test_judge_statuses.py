"""How the judge answers candidates that go wrong, each through the real sandbox. One small problem, one shared extension."""

import pytest
from judge_samples import HONEST, SIZES, TRITON, Judge, cache_directory, model, write_module

from evaluator.errors import UsageError
from evaluator.records import Status

PLAIN = "return torch.tanh(x) * 2 + self.shift"


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return Judge(cache_directory(tmp_path_factory), str(write_module(tmp_path_factory.mktemp("problem"))))


def test_a_check_is_right_and_carries_no_protected_figure(judge):
    result = judge("check", HONEST)
    assert (result.status, result.message) == (Status.OK, ""), result.log
    report = result.evaluation
    assert report.correct
    assert [(c.case, c.correct, c.seeds) for c in report.checks] == [("default", True, 3)]
    assert 0 < report.checks[0].max_abs_error < 1e-4
    assert (report.speedup, report.speedup_ci, report.speedup_bound, report.score) == (None, None, None, 0.0)
    assert (report.timings, report.trials, report.fast1, report.fast1_raw) == ((), {}, False, False)
    assert report.flags == ("checked only: nothing was timed",)
    assert judge.steps == ["integrity", "gate", "build", "correctness", "correctness"]
    assert result.source_sha256 is not None
    assert result.fingerprint["sha256"]
    assert result.context["device"] == "cpu"


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        pytest.param("return ext.scaled(x, self.shift) + 0.01", "seed 1 of 1", id="value"),
        pytest.param("return ext.scaled(x, self.shift).double()", "dtype", id="dtype"),
        pytest.param("y = ext.scaled(x, self.shift); x.mul_(2); return y", "input 0 was changed", id="input changed"),
        pytest.param("return ext.scaled(x, self.shift)[:-1]", "shape", id="shape", marks=pytest.mark.slow),
        pytest.param("return ext.scaled(x, self.shift) * float('nan')", "nan", id="nan", marks=pytest.mark.slow),
        pytest.param("return ext.scaled(x, self.shift), x", "tuple", id="two outputs", marks=pytest.mark.slow),
        pytest.param("return ext.scaled(x, self.shift.new_zeros(24))", "seed 1 of 1", id="weights ignored", marks=pytest.mark.slow),
    ],
)
def test_wrong_answers_are_incorrect(judge, forward, words):
    result = judge("check", model(forward), seeds=1)
    assert result.status is Status.INCORRECT, (result.message, result.log)
    assert words in result.message.lower()
    assert result.evaluation is None


def test_a_c_plus_plus_error_names_the_compilers_line(judge):
    extension = """import torch
from torch.utils.cpp_extension import load_inline

broken = load_inline("broken", "\\n\\ntorch::Tensor twice(torch::Tensor x) { return x * nowhere; }", functions=["twice"])
"""
    source = model("return broken.twice(x)", extension=extension)
    result = judge("check", source)
    assert result.status is Status.COMPILE_ERROR
    assert "main.cpp:4" in result.message
    assert "nowhere" in result.message
    assert "nowhere" in result.log


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import torch\nclass ModelNew(torch.nn.Module:\n    pass\n", "line 2"),
        (HONEST.replace("class ModelNew", "class Other"), "the source defines no `ModelNew`"),
        (HONEST + "\ndel ModelNew\n", "the source defines no `ModelNew`"),
    ],
    ids=["syntax", "no entry", "entry deleted"],
)
def test_what_does_not_parse_or_has_no_entry_is_a_compile_error(judge, source, words):
    result = judge("check", source)
    assert result.status is Status.COMPILE_ERROR
    assert words in result.message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(model("ext.crash(x)", "return x"), "SIGSEGV", id="crashes"),
        pytest.param(model("import os", "os._exit(7)"), "the process ended during a call", id="exits in a call"),
        pytest.param(model("return x", head="import os\nos._exit(0)\n"), "the import", id="exits at import", marks=pytest.mark.slow),
        pytest.param(HONEST.replace("randn(f", "randn(nothing, f"), "NameError", id="raises in the constructor", marks=pytest.mark.slow),
        pytest.param(
            model("return x", head="import nowhere_to_be_found\n"), "nowhere_to_be_found", id="raises at import", marks=pytest.mark.slow
        ),
    ],
)
def test_what_ends_or_does_not_start_is_a_runtime_error(judge, source, words):
    result = judge("check", source, gate=False)
    assert result.status is Status.RUNTIME_ERROR, (result.message, result.log)
    assert words in result.message


def test_what_raises_is_a_runtime_error_with_its_traceback(judge):
    result = judge("check", model("raise ValueError('no such luck')"))
    assert (result.status, result.message) == (Status.RUNTIME_ERROR, "forward raised ValueError: no such luck")
    assert "candidate.py" in result.log
    assert "no such luck" in result.log


@pytest.mark.parametrize(
    "forward", [pytest.param("ext.spin(x)", id="native"), pytest.param("while True: pass", id="python", marks=pytest.mark.slow)]
)
def test_what_does_not_end_is_a_timeout(judge, forward):
    result = judge("check", model(forward, "return x"), timeout_s=6)
    assert result.status is Status.TIMEOUT, result.message
    assert result.message == "no answer within 6 s"


@pytest.mark.parametrize(
    "kind", ["evaluate", pytest.param("check", marks=pytest.mark.slow), pytest.param("robustness", marks=pytest.mark.slow)]
)
def test_the_gate_refuses_in_every_kind(judge, kind):
    result = judge(kind, model("import subprocess", "subprocess.run(['id'])", "return ext.scaled(x, self.shift)"))
    assert result.status is Status.FORBIDDEN
    assert "line " in result.message
    assert "profile" in result.hint


def test_reference_operations_alone_are_no_kernel_of_its_own(judge):
    source = model("return torch.tanh(x) * 2 + self.shift", extension="import torch\n")
    assert judge("check", source).status is Status.NO_CUSTOM_KERNEL
    behind_the_gate = judge("check", source, gate=False)
    assert behind_the_gate.status is Status.NO_CUSTOM_KERNEL
    assert behind_the_gate.message == "none of its own kernels ran"


def test_a_kernel_whose_output_is_not_used_does_not_count(judge):
    result = judge("check", model("ext.scaled(x, self.shift)", "return torch.tanh(x) * 2 + self.shift"))
    assert result.status is Status.NO_CUSTOM_KERNEL
    assert result.message == "its output is right with its own kernels blanked"
    assert "load_inline or Triton" in result.hint


@pytest.mark.parametrize(
    ("head", "words"),
    [
        pytest.param("import time\ntime.perf_counter = lambda: 0.0\n", "time.perf_counter was replaced", id="clock"),
        pytest.param("torch.allclose = lambda *_, **__: True\n", "torch.allclose was replaced", id="comparison", marks=pytest.mark.slow),
        pytest.param("torch.set_num_threads(13)\n", "threads changed", id="threads", marks=pytest.mark.slow),
        pytest.param("torch.use_deterministic_algorithms(True)\n", "deterministic", id="determinism", marks=pytest.mark.slow),
    ],
)
def test_a_changed_process_is_tampered(judge, head, words):
    result = judge("check", model("return ext.scaled(x, self.shift)", head=head), gate=False, seeds=1)
    assert result.status is Status.TAMPERED, result.message
    assert words in result.message


def test_a_triton_candidate_is_evaluated_and_never_timed(judge):
    result = judge("evaluate", TRITON, seeds=1)
    assert result.status is Status.OK, (result.message, result.log)
    assert (result.evaluation.speedup, result.evaluation.timings) == (None, ())
    assert "Triton on a CPU device: checked through its interpreter, never timed" in result.evaluation.flags
    with pytest.raises(UsageError, match="never timed"):
        judge("ab", TRITON)


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        pytest.param("* 2 +", "* 3 +", Status.INCORRECT, "seed 1 of 1", id="wrong", marks=pytest.mark.slow),
        pytest.param("    return y", f"    {PLAIN}", Status.NO_CUSTOM_KERNEL, "blanked", id="unused"),
        pytest.param(
            "    squash[", f"    {PLAIN}\n        squash[", Status.NO_CUSTOM_KERNEL, "none of its own", id="idle", marks=pytest.mark.slow
        ),
        pytest.param("tl.exp(2", "tl.nothing(2", Status.RUNTIME_ERROR, "nothing", id="raises", marks=pytest.mark.slow),
    ],
)
def test_a_triton_candidate_may_be_wrong_too(judge, old, new, status, words):
    result = judge("check", TRITON.replace(old, new), seeds=1)
    assert result.status is status, (result.message, result.log)
    assert words in result.message


@pytest.mark.slow
def test_robustness_has_its_parts(judge, tmp_path):
    problem = str(write_module(tmp_path, sizes=SIZES))
    result = judge("robustness", HONEST, problem=problem)
    assert result.status is Status.OK, result.message
    assert result.robustness.passed
    assert [(p.name, p.passed, p.tests) for p in result.robustness.parts] == [
        ("many seeds", True, 8),
        ("repeated calls", True, 30),
        ("input mutation", True, 2),
        ("sizes", True, 8),
    ]
    assert "value regimes" in result.robustness.not_checked


def test_one_failing_part_fails_and_is_named(judge, tmp_path):
    problem = str(write_module(tmp_path, sizes=SIZES))
    source = model("y = ext.scaled(x, self.shift)", "return y if x.shape[0] == 40 else y + 1")
    assert judge("check", source, problem=problem, seeds=1).status is Status.OK
    result = judge("robustness", source, problem=problem)
    assert result.status is Status.INCORRECT
    assert [p.name for p in result.robustness.parts if not p.passed] == ["sizes"]
    assert result.message.startswith("sizes: incorrect: case tiny, seed 1 of 2")


def test_a_profile_says_where_the_time_goes(judge):
    result = judge("profile", model("return ext.scaled(x, self.shift) + torch.mm(x, x.t()).sum() * 0"), calls=4)
    assert (result.status, result.evaluation) == (Status.OK, None), result.log
    report = result.profiled
    assert report.calls == 4
    assert [case.case for case in report.cases] == ["default"]
    operations = {operation.name: operation for operation in report.cases[0].operations}
    assert operations["aten::mm"].calls == 1
    assert {operation.where for operation in operations.values()} == {"host"}
    assert operations["aten::mm"].us > 0
    assert (report.cases[0].gaps, report.cases[0].gap_us) == (0, None)


def test_a_wrong_candidate_is_profiled_as_well_and_a_crash_is_its_own(judge):
    assert judge("profile", model("return ext.scaled(x, self.shift) + 1"), calls=1).status is Status.OK
    crashed = judge("profile", model("ext.crash(x); return x"), calls=1)
    assert crashed.status is Status.RUNTIME_ERROR
    assert "SIGSEGV" in crashed.message


@pytest.mark.parametrize("error", ["SystemExit(0)", "KeyboardInterrupt"])
def test_an_exit_raised_in_a_call_is_an_error_like_any_other(judge, error):
    result = judge("check", model(f"raise {error}"), seeds=1)
    assert result.status is Status.RUNTIME_ERROR, result.message
    assert result.message == f"forward raised {error.replace('(0)', ': 0')}"
