"""What the daemon and its client load: never torch, never a user interface."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT

HEAVY = ("torch", "triton", "textual", "scipy", "numpy")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_daemon_never_loads_torch_or_a_screen():
    assert loaded_by("import daemon.__main__, daemon.lifecycle, daemon.launch").isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["daemon.client", "daemon.launch"])
def test_the_client_is_cheap_to_load(module):
    loaded = loaded_by(f"import {module}")
    assert loaded.isdisjoint({*HEAVY, "anthropic", "agents", "problems", "uvicorn", "starlette", "structlog", "aiosqlite"})
