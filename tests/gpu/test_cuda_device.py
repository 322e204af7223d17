"""What this version says on a CUDA host: nothing is measured there yet, and it says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_cuda_job_is_refused_with_the_mend(tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.py"
    candidate.write_text("class ModelNew:\n    pass\n")
    command = [sys.executable, "-m", "evaluator", "evaluate", "builtin:scan", str(candidate), "--device", "cuda"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "use --device cpu" in done.stderr
