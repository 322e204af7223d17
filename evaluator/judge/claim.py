"""What a naive evaluator would have believed of a candidate.

The naive evaluator (KernelBench's algorithm in its CPU form: one process, its own clock, one fixed
input) runs in a sandbox like everything else. Its figure is shown beside a refusal, never used.
Not for: any decision.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from evaluator.judge.candidate import build_source
from evaluator.judge.setting import OURS, Setting, runner_limits
from evaluator.judge.trial import Bench
from evaluator.protocol import blocks
from evaluator.qualification import naive
from evaluator.records import Claim
from evaluator.sandbox.command import Bind
from evaluator.sandbox.process import SandboxProcess

INSIDE = "/ratchet/naive"


def naive_claim(setting: Setting, bench: Bench) -> Claim | None:
    """Run the naive evaluator on the job's candidate and first case; None for problems it does not know."""
    job = setting.job
    if job.candidate is None or setting.style != "module":
        return None
    setting.progress("claim", "what a naive evaluator would have believed")
    built = build_source(setting, job.candidate.text, setting.problem)
    if built.directory is None:
        return Claim(correct=False, speedup=None, detail=f"it does not build: {built.message}"[:300])
    case = bench.trusted.case(setting.cases()[0], blocks.seed())
    files = Path(tempfile.mkdtemp(prefix="naive-", dir=setting.work))
    files.chmod(0o755)
    for name, text in {**case.files, "candidate.py": job.candidate.text}.items():
        (files / name).write_text(text, encoding="utf-8")
    return _run(setting, files, built.directory)


def _run(setting: Setting, files: Path, extensions: Path) -> Claim:
    arguments = naive.arguments(
        f"{INSIDE}/files/reference.py",
        f"{INSIDE}/files/candidate.py",
        entry=setting.problem.entry,
        extensions=f"{INSIDE}/extensions",
        threads=setting.threads,
        atol=setting.problem.atol,
        rtol=setting.problem.rtol,
    )
    binds = [
        Bind(source=naive.SCRIPT, target=f"{INSIDE}/program/naive_main.py"),
        Bind(source=OURS / "runner" / "extension.py", target=f"{INSIDE}/program/extension.py"),
        Bind(source=files, target=f"{INSIDE}/files"),
        Bind(source=extensions, target=f"{INSIDE}/extensions"),
    ]
    process = SandboxProcess.start(
        [f"{INSIDE}/program/naive_main.py", *arguments],
        sandbox=setting.sandbox,
        profile="run",
        affinity=setting.device.cores.runners,
        limits=runner_limits(setting.device),
        binds=binds,
        env=setting.environment,
    )
    with process:
        ended = process.wait(naive.TIMEOUT_S)
        words = "it did not finish" if ended is None else ended.words()
    return naive.read_claim(process.stdout, ended=words)
