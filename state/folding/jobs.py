"""Folding jobs of the judge: what is in flight, what it answered, what that says of the run.

Invariant: a request id has at most one outcome in the state; a second one is an alert.
Not for: promotion, which has its own record.
"""

from __future__ import annotations

from collections.abc import Callable

from state.events import JobStarted, JobVoided, Record
from state.folding.alerts import add_alert, experiment_for
from state.model import Experiment, InFlight, Outcome, RunState
from state.outcome import FinishedSummary, ResultSummary, outcome_of

STAGE_OF = {
    "check": "building",
    "bench": "measuring",
    "profile": "measuring",
    "evaluate": "measuring",
    "ab": "measuring",
    "robustness": "measuring",
}
"""Where a job of this kind puts an experiment that is not yet reported."""

EARLY_STAGES = ("open", "building", "measuring")


def job_started(state: RunState, record: Record, data: JobStarted) -> None:
    """Put the job in flight."""
    if data.request in state.finished_requests:
        add_alert(state, record, f"request {data.request} was started again after its result; ignored", level="alert")
        return
    _take(state, data.request)
    state.in_flight.append(
        InFlight(
            request=data.request,
            kind=data.kind,
            experiment=data.experiment,
            candidate=data.candidate,
            champion=data.champion,
            purpose=data.purpose,
            since=record.ts,
            seq=record.seq,
        )
    )
    if data.experiment is not None:
        experiment = experiment_for(state, record, data.experiment)
        if experiment is not None and experiment.stage in EARLY_STAGES:
            experiment.stage = STAGE_OF.get(data.kind, experiment.stage)


def job_finished(state: RunState, record: Record, data: FinishedSummary) -> None:
    """Take the job's outcome over."""
    if data.request in state.finished_requests:
        add_alert(state, record, f"request {data.request} has a second result; ignored", level="alert")
        return
    flight = _take(state, data.request)
    if flight is None:
        add_alert(state, record, f"request {data.request} has a result and was never started", level="alert")
    state.finished_requests[data.request] = record.seq
    state.device_s += data.result.device_s
    fingerprint = data.result.fingerprint.get("sha256")
    state.fingerprint = fingerprint if isinstance(fingerprint, str) else state.fingerprint
    _about_the_run(state, data.result)
    name = data.experiment or (flight.experiment if flight else None)
    experiment = experiment_for(state, record, name) if name is not None else None
    if experiment is not None:
        _about_the_experiment(experiment, outcome_of(data, seq=record.seq, candidate=flight.candidate if flight else None))


def job_voided(state: RunState, record: Record, data: JobVoided) -> None:
    """Take a cut-off job out of flight."""
    void(state, data.request)


def void(state: RunState, request: str) -> None:
    """Take `request` out of flight and count it, once however many records say so."""
    if _take(state, request) is not None:
        state.voided += 1


def _take(state: RunState, request: str) -> InFlight | None:
    for i, flight in enumerate(state.in_flight):
        if flight.request == request:
            return state.in_flight.pop(i)
    return None


def _about_the_run(state: RunState, result: ResultSummary) -> None:
    if result.qualification is not None:
        passed = sum(c.passed for c in result.qualification.controls)
        words = f"{passed} of {len(result.qualification.controls)} controls"
        state.qualified = result.qualification.qualified
        state.qualification = f"quick: {words}" if result.qualification.quick else words
    if result.status != "ok":
        return
    if result.baseline is not None:
        state.baseline_us, state.compiled_us = result.baseline.eager_us, result.baseline.compiled_us
        if state.champion is None:
            state.champion_us = result.baseline.eager_us
    if result.floor is not None:
        state.floor = result.floor.floor
        state.floor_by_case = {case.case: case.floor for case in result.floor.cases}


def _about_the_experiment(experiment: Experiment, outcome: Outcome) -> None:
    handler = _OUTCOMES.get(outcome.kind)
    if handler is not None:
        handler(experiment, outcome)


def _check(experiment: Experiment, outcome: Outcome) -> None:
    experiment.check = outcome
    # Only the protected evaluation may say "correct"; a failed check still says why there is none.
    if experiment.evaluation is None and outcome.status != "evaluator_error":
        experiment.correctness = "untested" if outcome.status == "ok" else outcome.status


def _evaluation(experiment: Experiment, outcome: Outcome) -> None:
    experiment.evaluation = outcome
    experiment.rung = max(experiment.rung, 1)
    if outcome.status != "evaluator_error":
        experiment.correctness = "correct" if outcome.status == "ok" else outcome.status


def _verdict(experiment: Experiment, outcome: Outcome) -> None:
    experiment.verdict = outcome
    if outcome.decision is not None:
        experiment.rung = 3
        experiment.performance = outcome.decision


def _robustness(experiment: Experiment, outcome: Outcome) -> None:
    experiment.robustness = outcome


_OUTCOMES: dict[str, Callable[[Experiment, Outcome], None]] = {
    "check": _check,
    "evaluate": _evaluation,
    "ab": _verdict,
    "robustness": _robustness,
}
