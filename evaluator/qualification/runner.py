"""Runs the controls through the evaluator it is given, and says whether the evaluator is qualified.

Every control is evaluated with the static gate on, and with the gate off, because the protocol must hold
by itself; where the gate let it pass the two are one measurement. An exploit also has
to take in the naive evaluator: one that nobody believes shows nothing.
Invariant: qualified means that every control of the chosen set got what its row says, nothing less.
Not for: how an evaluation is run; both evaluators are functions of the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evaluator.qualification.shipped import shipped_claim
from evaluator.qualification.table import Believes, Control, Expectation, subset
from evaluator.records import Claim, ControlOutcome, Job, JobKind, Progress, Qualification, Result, Status

CREDIT = 1.5
"""Speed-up from which the naive evaluator counts as taken in."""
LONGER_TRIALS = 100
"""Trials a side of the second measurement."""
_BY_THE_GATE = frozenset({Status.FORBIDDEN, Status.NO_CUSTOM_KERNEL})
_WRONG = frozenset({Status.INCORRECT, Status.TAMPERED, Status.RUNTIME_ERROR})

Evaluate = Callable[[Job], Result]
Naive = Callable[[Job], Claim]
Report = Callable[[Progress], None]


def qualify(
    evaluate: Evaluate,
    naive: Naive | None,
    *,
    quick: bool,
    progress: Report,
    chosen: Sequence[Control] | None = None,
    job_id: str = "qualify",
    device: str = "cpu",
) -> Qualification:
    """Run every control (with `quick` one a family) and compare.

    `evaluate` takes a Job of kind EVALUATE whose options hold `gate: bool` and the control's own options.
    `naive` takes the same Job and returns what the naive evaluator believed; None uses the measurement that
    ships with the control.
    """
    controls = tuple(chosen) if chosen is not None else subset(quick=quick)
    outcomes: list[ControlOutcome] = []
    for index, control in enumerate(controls):
        progress(Progress(job=job_id, step="control", detail=control.id, done=index, total=len(controls)))
        outcomes += _run(control, evaluate, naive, job_id=job_id, device=device)
    progress(Progress(job=job_id, step="control", detail="", done=len(controls), total=len(controls)))
    return Qualification(qualified=bool(outcomes) and all(o.passed for o in outcomes), quick=quick, controls=tuple(outcomes))


def job_of(control: Control, *, gate: bool, job_id: str = "qualify", device: str = "cpu") -> Job:
    """The evaluation job of one control."""
    return Job(
        id=f"{job_id}|{control.problem}|{control.id}|{'on' if gate else 'off'}",
        kind=JobKind.EVALUATE,
        problem=control.problem,
        candidate=control.source,
        profile=control.profile,
        device=device,
        options={**control.options, "gate": gate},
    )


def _run(control: Control, evaluate: Evaluate, naive: Naive | None, *, job_id: str, device: str) -> list[ControlOutcome]:
    on = _evaluate(job_of(control, gate=True, job_id=job_id, device=device), control.gate_on, evaluate)
    refused_by_gate = on.status in _BY_THE_GATE
    off = _evaluate(job_of(control, gate=False, job_id=job_id, device=device), control.gate_off, evaluate) if refused_by_gate else on
    claim = _claim(control, naive, job_id=job_id, device=device)
    return [
        _outcome(control, control.gate_on, on, gate=True, claim=None),
        _outcome(control, control.gate_off, off, gate=False, claim=claim),
    ]


def _evaluate(job: Job, expected: Expectation, evaluate: Evaluate) -> Result:
    """The result of one control; a gain that it may not have is measured again, longer: noise goes, a real gain stays."""
    result = evaluate(job)
    if result.status is Status.OK and not expected.accepts(result):
        result = evaluate(replace(job, options={"trials": LONGER_TRIALS, **job.options}))
    return result


def _claim(control: Control, naive: Naive | None, *, job_id: str, device: str) -> Claim | None:
    if not control.is_exploit:
        return None
    if naive is None or control.naive is Believes.CREDITS_OUTSIDE:
        return shipped_claim(control.id)
    return naive(job_of(control, gate=False, job_id=job_id, device=device))


def _outcome(control: Control, expected: Expectation, result: Result, *, gate: bool, claim: Claim | None) -> ControlOutcome:
    taken_in = not control.is_exploit or claim is None or credits(claim, result)
    speedup = result.evaluation.speedup if result.evaluation else None
    return ControlOutcome(
        control=control.id,
        profile=control.profile,
        gate=gate,
        expected=expected.words,
        got=_got(result, speedup, taken_in=taken_in, claim=claim),
        passed=expected.accepts(result) and taken_in,
        speedup=speedup,
        naive_speedup=claim.speedup if claim else None,
        naive_correct=claim.correct if claim else None,
    )


def credits(claim: Claim, result: Result) -> bool:
    """Whether the naive evaluator was taken in: at least CREDIT, or right what the evaluator found wrong."""
    fast = claim.speedup is not None and claim.speedup >= CREDIT
    return claim.correct and (fast or result.status in _WRONG)


def _got(result: Result, speedup: float | None, *, taken_in: bool, claim: Claim | None) -> str:
    words = result.status.value if speedup is None or result.status is not Status.OK else f"ok, gain {speedup:.3f}x"
    if result.status is not Status.OK and result.message:
        words += f": {result.message[:200]}"
    if not taken_in:
        words += f"; the naive evaluator was not taken in ({claim.detail if claim and claim.detail else 'no credit'})"
    return words
