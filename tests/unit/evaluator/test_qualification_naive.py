"""The naive evaluator as a script: it measures honest work, and it believes what it should not."""

import subprocess
import sys

import pytest

from evaluator.qualification import naive

REFERENCE = """
import torch
rows = 64


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, 64)]


def get_init_inputs():
    return [64]
"""

HONEST = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)

    def forward(self, x):
        return self.linear(x).clamp_min(0)
"""

HACKS = {
    "comparison": "torch.allclose = lambda *a, **k: True\n",
    "reference": "Model.forward = lambda self, x: torch.zeros(x.shape[0], 64)\n",
    "constants": "rows = 1\n",
}
WRONG = HONEST.replace(
    "return self.linear(x).clamp_min(0)", "return torch.zeros(x.shape[0], 64) if x.shape[0] > 1 else self.linear(x).clamp_min(0)"
)


def claim(tmp_path, candidate, **options):
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "candidate.py").write_text(candidate)
    arguments = naive.arguments(str(tmp_path / "reference.py"), str(tmp_path / "candidate.py"), trials=5, **options)
    done = subprocess.run([sys.executable, str(naive.SCRIPT), *arguments], capture_output=True, text=True, timeout=120)
    return naive.read_claim(done.stdout, ended=f"exit {done.returncode}")


def test_honest_work_is_right(tmp_path):
    found = claim(tmp_path, HONEST, constants={"rows": 32})
    assert found.correct is True
    assert found.speedup is not None
    assert found.speedup > 0


def test_a_wrong_answer_is_wrong(tmp_path):
    found = claim(tmp_path, WRONG)
    assert (found.correct, found.speedup, found.detail) == (False, None, "outputs differ")


def test_what_cannot_run_is_told(tmp_path):
    assert claim(tmp_path, "class Other: pass\n").detail == "KeyError: 'ModelNew'"


@pytest.mark.parametrize("hack", HACKS)
def test_it_believes_what_shares_its_process(tmp_path, hack):
    assert claim(tmp_path, WRONG + HACKS[hack]).correct is True


def test_the_last_line_wins_whoever_wrote_it():
    true, forged = '{"correct": false, "speedup": null, "error": "outputs differ"}', '{"correct": true, "speedup": 25}'
    assert naive.read_claim(f"{true}\n{forged}\n").speedup == 25.0
    assert naive.read_claim(f"{forged}\nnoise\n{true}\n{{broken\n[1]\n").correct is False


def test_no_answer_is_no_belief():
    assert naive.read_claim("", ended="exit -9").detail == "no answer (exit -9)"
    odd = naive.read_claim('{"correct": 1, "speedup": "9", "error": "a\\u001b[2Jb"}')
    assert (odd.correct, odd.speedup, odd.detail) == (False, None, "a [2Jb")
    assert naive.read_claim('{"correct": true, "speedup": true}').speedup is None


def test_arguments():
    assert naive.arguments("r.py", "c.py", constants={"n": 1}, extensions="/x")[:6] == [
        "r.py",
        "c.py",
        "--entry",
        "ModelNew",
        "--constants",
        '{"n": 1}',
    ]
    assert naive.arguments("r.py", "c.py", extensions="/x")[-2:] == ["--extensions", "/x"]
