"""One job in, one result out: whatever happens in between becomes a status in words.

Not for: the command line (`evaluator.__main__`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evaluator.devices.cpu import open_cpu
from evaluator.errors import EnvironmentFault, UsageError
from evaluator.fingerprint import fingerprint
from evaluator.judge.baseline import baseline
from evaluator.judge.candidate import check
from evaluator.judge.claim import naive_claim
from evaluator.judge.evaluation import evaluate
from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.robustness import robustness
from evaluator.judge.setting import Setting
from evaluator.judge.verdict import compare, floor
from evaluator.records import Evaluation, Job, JobKind, Progress, Result, Status
from evaluator.sandbox.probe import require_sandbox
from problems.registry import load

Report = Callable[[Progress], None]


def run(job: Job, *, cache: Path, report: Report) -> Result:
    """Run one job. EvaluatorError and ProblemError (environment, usage) pass through; everything else is a result."""
    if job.device != "cpu":
        raise EnvironmentFault(f"this version measures on `cpu` only, not on `{job.device}`", "use --device cpu")
    started = time.monotonic()
    report(Progress(job=job.id, step="integrity"))
    problem = load(job.problem, expected_sha256=job.problem_sha256)
    device = open_cpu()
    sandbox = require_sandbox()
    base = Result(
        job=job.id,
        kind=job.kind,
        status=Status.OK,
        problem=problem.key,
        problem_sha256=problem.sha256,
        source_sha256=job.candidate.sha256 if job.candidate else None,
        profile=job.profile,
        fingerprint=fingerprint(),
    )
    with Setting(job=job, problem=problem, device=device, sandbox=sandbox, cache=cache, report=report) as setting:
        result = _measure(setting, base)
    return replace(result, context=device.context(), wall_s=round(time.monotonic() - started, 3), device_s=round(setting.device_s, 3))


def _measure(setting: Setting, base: Result) -> Result:
    try:
        return KINDS[setting.job.kind](setting, base)
    except Refusal as refusal:
        refused = replace(base, status=refusal.status, message=refusal.message, hint=refusal.hint, log=refusal.log)
        return _with_claim(setting, refused)
    except Infrastructure as failure:
        return replace(base, status=Status.EVALUATOR_ERROR, message=failure.message, log=failure.log)


def _evaluate(setting: Setting, base: Result) -> Result:
    return replace(base, evaluation=evaluate(setting))


def _check(setting: Setting, base: Result) -> Result:
    checks = check(setting)
    return replace(base, evaluation=_unmeasured(correct=True, checks=checks))


def _ab(setting: Setting, base: Result) -> Result:
    return replace(base, verdict=compare(setting))


def _floor(setting: Setting, base: Result) -> Result:
    return replace(base, floor=floor(setting))


def _baseline(setting: Setting, base: Result) -> Result:
    report, why = baseline(setting)
    return replace(base, baseline=report, message=why)


def _robustness(setting: Setting, base: Result) -> Result:
    report = robustness(setting)
    failed = [p for p in report.parts if not p.passed]
    status = Status.INCORRECT if failed else Status.OK
    return replace(base, robustness=report, status=status, message="; ".join(f"{p.name}: {p.detail}" for p in failed))


KINDS: dict[JobKind, Callable[[Setting, Result], Result]] = {
    JobKind.EVALUATE: _evaluate,
    JobKind.CHECK: _check,
    JobKind.AB: _ab,
    JobKind.FLOOR: _floor,
    JobKind.BASELINE: _baseline,
    JobKind.ROBUSTNESS: _robustness,
}
