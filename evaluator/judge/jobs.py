"""One job in, one result out: whatever happens in between becomes a status in words.

Not for: the command line (`evaluator.__main__`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from evaluator.build.builder import precompile
from evaluator.devices.opening import open_device
from evaluator.devices.processor import building_cores
from evaluator.errors import EvaluatorError
from evaluator.fingerprint import fingerprint
from evaluator.judge.baseline import baseline
from evaluator.judge.candidate import build_source
from evaluator.judge.check import check
from evaluator.judge.claim import naive_claim
from evaluator.judge.evaluation import evaluate
from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.profiling import profile
from evaluator.judge.robustness import robustness
from evaluator.judge.runner import LOG_LIMIT
from evaluator.judge.sense import require_sense
from evaluator.judge.setting import Setting
from evaluator.judge.verdict import compare, floor
from evaluator.qualification.runner import qualify
from evaluator.qualification.table import Control, chosen_controls, native_flags
from evaluator.records import Claim, Evaluation, Job, JobKind, Progress, Result, Status
from evaluator.sandbox.output import sanitise
from evaluator.sandbox.probe import require_sandbox
from problems.errors import ProblemError
from problems.registry import load

Report = Callable[[Progress], None]
MESSAGE_LIMIT = 2000
WAITING = 4
"""Builds beyond one a core: several controls wait for one shared library."""
BENCH = {"seeds": 1, "trials": 20}
"""What a bench takes where the job says nothing else."""
QUICK_TRIALS = 20
"""Trials a side of each control in a quick qualification, on one case of the problem."""


def run(job: Job, *, cache: Path, report: Report) -> Result:
    """Run one job. EvaluatorError and ProblemError (environment, usage) pass through; everything else is a result."""
    started = time.monotonic()
    report(Progress(job=job.id, step="integrity"))
    device = open_device(job.device)
    problem = load(job.problem, expected_sha256=job.problem_sha256)
    require_sense(job, problem, device)
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
    return replace(
        _readable(result), context=device.context(), wall_s=round(time.monotonic() - started, 3), device_s=round(setting.device_s, 3)
    )


def _readable(result: Result) -> Result:
    """The one exit of words that a candidate had a part in: printable, bounded, and encodable."""
    message, hint, log = (sanitise(text) for text in (result.message, result.hint, result.log))
    return replace(result, message=message[:MESSAGE_LIMIT], hint=hint[:MESSAGE_LIMIT], log=log)


def _measure(setting: Setting, base: Result) -> Result:
    try:
        return KINDS[setting.job.kind](setting, base)
    except Refusal as refusal:
        refused = replace(base, status=refusal.status, message=refusal.message, hint=refusal.hint, log=refusal.log)
        return _with_claim(setting, refused)
    except Infrastructure as failure:
        return replace(base, status=Status.EVALUATOR_ERROR, message=failure.message, log=failure.log)
    except (EvaluatorError, ProblemError):
        raise
    except Exception as bug:  # a defect of ours is infrastructure too: said whole, never a candidate's fault
        words = f"the judge failed: {bug!r}"[:500]
        return replace(base, status=Status.EVALUATOR_ERROR, message=words, log=traceback.format_exc()[-LOG_LIMIT:])


def _with_claim(setting: Setting, result: Result) -> Result:
    """Beside a refused evaluation, what a naive evaluator would have said, where the job asked for it."""
    if not setting.job.options.get("naive") or setting.job.kind is not JobKind.EVALUATE:
        return result
    try:
        claim = naive_claim(setting, setting.bench())
    except Infrastructure as failure:
        claim = Claim(correct=False, speedup=None, detail=failure.message[:300])
    refused = Evaluation(
        correct=False, fast1=False, fast1_raw=False, speedup=None, speedup_ci=None, speedup_bound=None, score=0.0, naive=claim
    )
    return replace(result, evaluation=refused)


def _evaluate(setting: Setting, base: Result) -> Result:
    return replace(base, evaluation=evaluate(setting))


def _check(setting: Setting, base: Result) -> Result:
    return replace(base, evaluation=check(setting))


def _bench(setting: Setting, base: Result) -> Result:
    setting.job = replace(setting.job, options={**BENCH, **setting.job.options})
    report = evaluate(setting)
    return replace(base, evaluation=replace(report, flags=(*report.flags, "bench only: few trials, and nothing is decided by them")))


def _profile(setting: Setting, base: Result) -> Result:
    return replace(base, profiled=profile(setting))


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


def _qualify(setting: Setting, base: Result) -> Result:
    quick = bool(setting.job.options.get("quick"))
    chosen = chosen_controls(setting.job.options.get("controls"), quick=quick)
    with Controls(setting, base) as controls:
        controls.build_all(chosen)
        report = qualify(
            controls.evaluate,
            None if quick else controls.claim,
            quick=quick,
            chosen=chosen,
            progress=setting.report,
            job_id=setting.job.id,
        )
    failed = [f"{o.control} (gate {'on' if o.gate else 'off'}): {o.got}" for o in report.controls if not o.passed]
    return replace(base, qualification=report, message="; ".join(failed)[:2000])


class Controls:
    """Evaluates controls in a row: the trusted process and the reference stay warm while nothing goes wrong with them."""

    def __init__(self, setting: Setting, base: Result) -> None:
        self._setting = setting
        self._base = base
        self._warm: Setting | None = None
        self._quick = bool(setting.job.options.get("quick"))
        self._defaults = {"seeds": 1, "trials": QUICK_TRIALS} if self._quick else {"seeds": 2}

    def __enter__(self) -> Controls:
        return self

    def build_all(self, chosen: Sequence[Control]) -> None:
        """Build every control on all cores before the device is held: what is built then is found again when its turn comes."""
        texts = {control.text: load(control.problem) for control in chosen}
        done = 0
        cores = building_cores(self._setting.device.cores)
        with ThreadPoolExecutor(len(cores) + WAITING) as pool:
            for flags in native_flags():
                pool.submit(precompile, flags, cache=self._setting.cache, sandbox=self._setting.sandbox, cores=cores)
            for _ in pool.map(lambda item: build_source(self._setting, *item), texts.items()):
                done += 1
                self._setting.progress("build", "controls", done, len(texts))

    def __exit__(self, *_: object) -> None:
        self._restart()

    def evaluate(self, job: Job) -> Result:
        """One control, as any evaluation; infrastructure failures are tried once more in a fresh setting."""
        result = self._once(job)
        return self._once(job) if result.status is Status.EVALUATOR_ERROR else result

    def claim(self, job: Job) -> Claim:
        """What the naive evaluator believes of a control."""
        setting = self._fresh(job)
        return naive_claim(setting, setting.bench()) or Claim(correct=False, speedup=None, detail="not a module problem")

    def _once(self, job: Job) -> Result:
        result = _measure(self._fresh(job), replace(self._base, job=job.id, kind=job.kind))
        if result.status is Status.EVALUATOR_ERROR:
            self._restart()
        return result

    def _fresh(self, job: Job) -> Setting:
        if self._warm is None or self._warm.problem.key != job.problem:
            self._restart()
            self._warm = self._setting.another(job, load(job.problem))
        cases = tuple(case.name for case in self._warm.problem.cases(job.device)[:1]) if self._quick else None
        self._warm.job = replace(job, options={**self._defaults, **job.options}, cases=cases)
        return self._warm

    def _restart(self) -> None:
        if self._warm is not None:
            self._warm.__exit__(None, None, None)
            self._setting.device_s += self._warm.device_s
            self._warm = None


KINDS: dict[JobKind, Callable[[Setting, Result], Result]] = {
    JobKind.EVALUATE: _evaluate,
    JobKind.CHECK: _check,
    JobKind.BENCH: _bench,
    JobKind.PROFILE: _profile,
    JobKind.AB: _ab,
    JobKind.FLOOR: _floor,
    JobKind.BASELINE: _baseline,
    JobKind.ROBUSTNESS: _robustness,
    JobKind.QUALIFY: _qualify,
}
