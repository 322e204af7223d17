"""Small problems written into temporary folders."""

from __future__ import annotations

from pathlib import Path

MODULE = '''import torch
import torch.nn as nn


class Model(nn.Module):
    """Doubles and shifts."""

    def __init__(self, features):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return 2 * x + self.shift


rows = 3
features = 5
shape = (rows, features)


def get_inputs():
    return [torch.randn(*shape)]


def get_init_inputs():
    return [features]
'''

SIDECAR = """title: Shifted double
atol: 1e-5
rtol: 1.0e-6
parameters: constant
cpu:
  benchmarks: {base: {rows: 7}}
  smaller: {tiny: {rows: 1, features: 2}}
  larger: {big: {rows: 20}}
"""

TASK = """files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: |
  Add two vectors into the buffer that comes with them.
tests:
  - {"size": 3, "seed": 1}
  - {"size": 4, "seed": 1, "kind": "flat"}
  - {"size": 4, "seed": 2, "kind": "flat"}
benchmarks:
  - {"size": 100, "seed": 3}
"""

REFERENCE = """import torch
from task import input_t, output_t
from utils import make_match_reference


def generate_input(size: int, seed: int, kind: str = "normal") -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    a = torch.randn(size, device="cuda", generator=gen).contiguous()
    b = torch.ones(size, device="cuda") if kind == "flat" else torch.randn(size, device="cuda", generator=gen)
    return a, {"b": b, "scale": 2.0}, torch.empty(size, device="cuda")


def ref_kernel(data: input_t) -> output_t:
    a, more, _ = data
    return a + more["scale"] * more["b"]


check_implementation = make_match_reference(ref_kernel, rtol=1e-5, atol=1e-6)
"""

TASK_PY = """from typing import TypedDict, TypeVar
import torch

input_t = TypeVar("input_t", bound=tuple[torch.Tensor, dict, torch.Tensor])
output_t = TypeVar("output_t", bound=torch.Tensor)


class TestSpec(TypedDict):
    size: int
    seed: int
"""


def write_module(folder: Path, text: str = MODULE, *, sidecar: str | None = None) -> Path:
    path = folder / "doubled.py"
    path.write_text(text, encoding="utf-8")
    if sidecar is not None:
        path.with_suffix(".yml").write_text(sidecar, encoding="utf-8")
    return path


def write_folder(parent: Path, *, reference: str = REFERENCE, task: str = TASK) -> Path:
    folder = parent / "adding_py"
    folder.mkdir(parents=True)
    (folder / "task.yml").write_text(task, encoding="utf-8")
    (folder / "task.py").write_text(TASK_PY, encoding="utf-8")
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    return folder
