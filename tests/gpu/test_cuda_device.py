"""One protected evaluation on a real GPU: honest kernels are measured, wrong ones refused, and a crash is the candidate's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import candidates
import pytest

from evaluator.qualification.table import source_text
from evaluator.records import Result, Status, decode

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def evaluate(candidate: Path, cache: Path, *options: str) -> Result:
    """The result of one evaluation of `builtin:gemm_epilogue` on the first GPU, one case."""
    command = [sys.executable, "-m", "evaluator", "evaluate", "builtin:gemm_epilogue", str(candidate), "--device", "cuda", "--json"]
    command += ["--case", "square", "--cache", str(cache), "--seeds", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if '"status"' in line]
    assert lines, done.stderr[-2000:]
    return decode(Result, json.loads(lines[-1]))


def test_the_references_own_operations_gain_nothing(tmp_path: Path, cache: Path) -> None:
    candidate = tmp_path / "null.py"
    candidate.write_text(source_text("null_kernel"))
    result = evaluate(candidate, cache)
    assert result.status is Status.OK, result.message
    assert result.evaluation is not None
    timing = result.evaluation.timings[0]
    assert timing.audit.overhead_us < timing.audit.wall_us
    assert result.evaluation.speedup is not None
    assert 0.8 < result.evaluation.speedup < 1.25  # a shared machine; the figure itself is evidence's business
    assert result.context["gpu"]


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("fused", {Status.OK}),
        ("wrong_slope", {Status.INCORRECT}),
        ("first_answer", {Status.INCORRECT}),
        ("unwritten", {Status.INCORRECT, Status.NO_CUSTOM_KERNEL}),
        ("side_stream", {Status.OK, Status.TAMPERED}),
        ("kept_buffer", {Status.OK, Status.TAMPERED}),
        ("illegal_access", {Status.RUNTIME_ERROR}),
        ("endless", {Status.TIMEOUT}),
    ],
)
def test_each_candidate_gets_its_status_and_no_cheat_a_gain(name: str, statuses: set[Status], tmp_path: Path, cache: Path) -> None:
    candidate = tmp_path / "candidate.py"
    candidate.write_text(candidates.text(name))
    result = evaluate(candidate, cache, "--no-gate")
    assert result.status in statuses, result.message
    if result.status is Status.OK:
        assert result.evaluation is not None
        assert (result.evaluation.speedup or 0) < 1.3, "the honest kernel's own gain is 1.1"
