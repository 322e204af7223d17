"""Problems, candidates and jobs for tests of the judge. All C++ candidates share one extension, so that one build serves them all."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.judge import jobs
from evaluator.records import Job, JobKind, Progress, Result, Source, Status, decode, dumps, encode

ROOT = Path(__file__).resolve().parents[2]

CPP = """#include <cmath>
torch::Tensor scaled(torch::Tensor x, torch::Tensor shift) {
  auto y = torch::empty_like(x);
  const float *in = x.data_ptr<float>(), *add = shift.data_ptr<float>();
  float *out = y.data_ptr<float>();
  const int64_t width = shift.numel();
  for (int64_t i = 0; i < x.numel(); i++) out[i] = std::tanh(in[i]) * 2 + add[i % width];
  return y;
}
torch::Tensor running_mean(torch::Tensor x, torch::Tensor gate, torch::Tensor bias, int64_t rounds) {
  auto y = torch::empty_like(x);
  const float *in = x.data_ptr<float>(), *g = gate.data_ptr<float>(), *b = bias.data_ptr<float>();
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  std::vector<double> above(width), below(width);
  for (int64_t round = 0; round < rounds; round++)
    for (int64_t n = 0; n < batch; n++) {
      std::fill(above.begin(), above.end(), 0.0);
      std::fill(below.begin(), below.end(), 0.0);
      for (int64_t t = 0; t < length; t++)
        for (int64_t f = 0; f < width; f++) {
          const int64_t i = (n * length + t) * width + f;
          const float weight = std::exp(g[i] + b[f]);
          above[f] += double(weight) * in[i];
          below[f] += weight;
          y.data_ptr<float>()[i] = float(above[f] / below[f]);
        }
    }
  return y;
}
torch::Tensor distance(torch::Tensor x, torch::Tensor centre, torch::Tensor weight) {
  auto y = torch::empty({x.size(0)}, x.options());
  const float *in = x.data_ptr<float>(), *c = centre.data_ptr<float>(), *w = weight.data_ptr<float>();
  for (int64_t r = 0; r < x.size(0); r++) {
    double sum = 0;
    for (int64_t i = 0; i < x.size(1); i++) {
      const double d = double(in[r * x.size(1) + i]) - c[i];
      sum += w[i] * d * d;
    }
    y.data_ptr<float>()[r] = float(sum);
  }
  return y;
}
std::tuple<torch::Tensor, torch::Tensor> decompose(torch::Tensor a) { return at::linalg_eigh(a); }
torch::Tensor weighted_sum(torch::Tensor a, torch::Tensor b, double scale) { return a + b * scale; }
void crash(torch::Tensor x) { *(volatile int*)(x.numel() - x.numel()) = 1; }
void spin(torch::Tensor x) { for (volatile int64_t i = 0; i < (int64_t(1) << 62); i++) {} }
"""
FUNCTIONS = ["scaled", "running_mean", "distance", "decompose", "weighted_sum", "crash", "spin"]
EXTENSION = f"""import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline("ext", {CPP!r}, functions={FUNCTIONS!r}, extra_cflags=["-O2"])
"""
MODULE = '''import torch
import torch.nn as nn


class Model(nn.Module):
    """Squashed, doubled and shifted."""

    def __init__(self, features):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.tanh(x) * 2 + self.shift


rows = 40
features = 24


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
'''
SIZES = """title: Squashed, doubled and shifted
cpu:
  benchmarks: {base: {rows: 40}}
  smaller: {tiny: {rows: 1, features: 2}}
  larger: {tall: {rows: 100}}
"""
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def squash(x, shift, y, count, width, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    e = tl.exp(2 * tl.load(x + place, mask=inside))
    tl.store(y + place, (e - 1) / (e + 1) * 2 + tl.load(shift + place % width, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = torch.empty_like(x)
        squash[(triton.cdiv(x.numel(), 256),)](x, self.shift, y, x.numel(), self.shift.numel(), BLOCK=256)
        return y
"""


def model(*forward: str, head: str = "", extension: str = EXTENSION) -> str:
    """A candidate for MODULE whose forward has these lines."""
    body = "\n        ".join(forward)
    return f"""{extension}{head}

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        {body}
"""


def scan_model(rounds: int = 1) -> str:
    """A candidate for builtin:scan that does its work `rounds` times."""
    return f"""{EXTENSION}
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(features) * 0.1)

    def forward(self, x, gate):
        return ext.running_mean(x, gate, self.bias, {rounds})
"""


def kernel(*body: str) -> str:
    """A candidate `custom_kernel`."""
    lines = "\n    ".join(body)
    return f"{EXTENSION}\ndef custom_kernel(data):\n    {lines}\n"


HONEST = model("return ext.scaled(x, self.shift)")


def source(text: str) -> Source:
    return Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def write_module(folder: Path, *, sizes: str | None = None) -> Path:
    """A user's own KernelBench file."""
    path = folder / "squash.py"
    path.write_text(MODULE, encoding="utf-8")
    if sizes is not None:
        path.with_suffix(".yml").write_text(sizes, encoding="utf-8")
    return path


def cache_directory(factory: pytest.TempPathFactory) -> Path:
    """RATCHET_TEST_CACHE where it is set (kept between runs), else one directory a test session, shared by its workers."""
    kept = os.environ.get("RATCHET_TEST_CACHE")
    if kept:
        return Path(kept)
    base = factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "judge-cache"


class Judge:
    """Runs jobs in this process, with everything real below it."""

    def __init__(self, cache: Path, problem: str) -> None:
        self.cache = cache
        self.problem = problem

    def __call__(
        self,
        kind: str,
        candidate: str | None = None,
        *,
        champion: str | None = None,
        problem: str | None = None,
        cases: tuple[str, ...] | None = None,
        **options: object,
    ) -> Result:
        """One job. A device that is not quiet is no finding about the judge: it is asked again."""
        job = Job(
            id=f"kernel|test|{kind}|1",
            kind=JobKind(kind),
            problem=problem or self.problem,
            candidate=None if candidate is None else source(candidate),
            champion=None if champion is None else source(champion),
            cases=cases,
            options=dict(options),
        )
        for _ in range(5):
            self.steps: list[str] = []
            result = self.run(job)
            assert decode(Result, encode(result)) == result
            if result.status is not Status.EVALUATOR_ERROR or "not quiet" not in result.message:
                break
        return result

    def run(self, job: Job) -> Result:
        """In this process: nothing that counts is timed."""
        return jobs.run(job, cache=self.cache, report=self._hear)

    def _hear(self, progress: Progress) -> None:
        """Waiting for the device is no step of a job's own."""
        if progress.step != "lease":
            self.steps.append(progress.step)


class MeasuringJudge(Judge):
    """Runs jobs as the daemon does: a judge of its own, on its cores and at its priority."""

    def run(self, job: Job) -> Result:
        """One process, one job file, one result file."""
        with tempfile.TemporaryDirectory() as folder:
            request, answer = Path(folder, "job.json"), Path(folder, "result.json")
            request.write_text(dumps(job), encoding="utf-8")
            command = [sys.executable, "-m", "evaluator", "run", str(request), "--result", str(answer), "--cache", str(self.cache)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return decode(Result, json.loads(answer.read_text(encoding="utf-8")))
