"""The parts of the promotion gate, one function each.

Pure. Each looks at the records about one candidate and says whether its part holds, and in words what it
rests on or what is missing.
Invariant: a part holds only for exactly the candidate's text, in this run's problem, profile and device.
Not for: putting the parts together (`daemon.gate`).
"""

from __future__ import annotations

import math

from daemon.gate_evidence import Evidence
from evaluator.records import Decision, Floor, Result, Status
from state.events import GateCheck
from state.model import RunState
from state.prediction import prediction_sha256

ROBUSTNESS_PARTS = ("many seeds", "repeated calls", "input mutation", "sizes")
"""Parts of `evaluator.judge.robustness` that must have run and passed."""

OPTIONAL_PARTS = ("sizes",)
"""Parts that a problem may have nothing to offer for; then they are named as not checked."""


def checks(state: RunState, evidence: Evidence, experiment: str) -> list[GateCheck]:
    """Every part's answer on what is on record about `experiment`."""
    return [
        _check_candidate(state, evidence, experiment),
        _check_prediction(evidence),
        _check_evaluation(state, evidence),
        _check_floor(state, evidence),
        _check_verdict(state, evidence),
        _check_robustness(state, evidence),
        _check_reconciled(evidence),
    ]


def _check_candidate(state: RunState, evidence: Evidence, experiment: str) -> GateCheck:
    if experiment not in state.experiments:
        return _no("candidate", f"there is no experiment {experiment[:80]!r}")
    if evidence.sha256 is None:
        return _no("candidate", "the experiment stands for no candidate")
    if evidence.submitted_seq is None:
        return _no("candidate", f"{evidence.sha256[:12]} was not submitted in this experiment")
    if evidence.sha256 == state.champion:
        return _no("candidate", "it is the champion already")
    return _yes("candidate", evidence.sha256[:12])


def _check_prediction(evidence: Evidence) -> GateCheck:
    opened = evidence.opened
    if opened is None or evidence.opened_seq is None:
        return _no("prediction", "no prediction was frozen")
    if not opened.prediction or prediction_sha256(opened.prediction) != opened.prediction_sha256:
        return _no("prediction", "the frozen prediction does not have the hash it was frozen under")
    first = evidence.first_job_seq
    if first is not None and first < evidence.opened_seq:
        return _no("prediction", f"record {first} measured this before the prediction was frozen (record {evidence.opened_seq})")
    return _yes("prediction", f"frozen at record {evidence.opened_seq}, before the first job")


def _check_evaluation(state: RunState, evidence: Evidence) -> GateCheck:
    result = evidence.evaluation
    fault = _fault(result, state, evidence)
    if fault or result is None:
        return _no("evaluation", fault)
    report = result.evaluation
    if report is None or not report.correct:
        return _no("evaluation", "not correct")
    if report.speedup is None or report.speedup_ci is None or not _positive(report.speedup, report.speedup_ci.low, report.speedup_ci.high):
        return _no("evaluation", "it states no speed-up with an interval")
    if not report.timings or not _positive(*(timing.cand_us for timing in report.timings)):
        return _no("evaluation", "it timed no case")
    interval = f"[{report.speedup_ci.low:.3f}, {report.speedup_ci.high:.3f}]"
    flags = f"; flags: {', '.join(report.flags)}" if report.flags else ""
    return _yes("evaluation", f"correct, {report.speedup:.3f}x {interval} over the reference{flags}")


def _check_floor(state: RunState, evidence: Evidence) -> GateCheck:
    floor = _floor(evidence.floor)
    if floor is None:
        return _no("floor", "no A/A measurement of the noise floor in this run")
    mine, theirs = _fingerprint(evidence.floor), _fingerprint(evidence.verdict)
    if mine and theirs and mine != theirs:
        return _no("floor", "it was measured on another device or with another toolchain than the A/B")
    return _yes("floor", f"{floor.floor:.2%} by A/A on {state.device}")


def _check_verdict(state: RunState, evidence: Evidence) -> GateCheck:
    result = evidence.verdict
    fault = _fault(result, state, evidence)
    if fault or result is None:
        return _no("a/b", fault)
    verdict, floor = result.verdict, _floor(evidence.floor)
    if verdict is None or verdict.candidate_sha256 != evidence.sha256:
        return _no("a/b", "the verdict is not about this candidate")
    if verdict.champion_sha256 != state.champion:
        return _no(
            "a/b", f"stale: it was against {_name(verdict.champion_sha256)}, the champion is {_name(state.champion)} now; run the A/B again"
        )
    if verdict.decision is not Decision.FASTER:
        return _no("a/b", f"{verdict.decision.value}: {verdict.reason}")
    bound = 1 - max(verdict.floor, floor.floor if floor else 0.0)
    if not _positive(verdict.rho, verdict.rho_ci.high, verdict.rho_wall_ci.high) or verdict.outputs_verified < 1:
        return _no("a/b", "the verdict holds no usable ratio or verified no output")
    if verdict.rho_ci.high >= bound:
        return _no("a/b", f"not above the floor: rho up to {verdict.rho_ci.high:.4f}, needed below {bound:.4f}")
    if verdict.rho_wall_ci.high >= 1:
        return _no("a/b", f"the wall clock does not confirm it: rho up to {verdict.rho_wall_ci.high:.4f}")
    return _yes("a/b", f"faster, rho {verdict.rho:.4f} [{verdict.rho_ci.low:.4f}, {verdict.rho_ci.high:.4f}], both clocks")


def _check_robustness(state: RunState, evidence: Evidence) -> GateCheck:
    result = evidence.robustness
    fault = _fault(result, state, evidence)
    if fault or result is None:
        return _no("robustness", fault)
    report = result.robustness
    if report is None or not report.passed or not all(part.passed for part in report.parts):
        failed = [f"{part.name} ({part.detail})" for part in report.parts if not part.passed] if report else []
        return _no("robustness", "failed: " + (", ".join(failed) or "no report"))
    ran = {part.name for part in report.parts if part.tests > 0 or part.name in OPTIONAL_PARTS}
    missing = [name for name in ROBUSTNESS_PARTS if name not in ran]
    if missing:
        return _no("robustness", f"did not run: {', '.join(missing)}")
    return _yes("robustness", f"{sum(part.tests for part in report.parts)} tests in {len(report.parts)} parts")


def _check_reconciled(evidence: Evidence) -> GateCheck:
    if evidence.reconciled_seq is None:
        return _no("reconciliation", "the experiment is not reconciled")
    if evidence.first_verdict_seq is None or evidence.reconciled_seq < evidence.first_verdict_seq:
        return _no("reconciliation", "it was reconciled before its A/B was known")
    return _yes("reconciliation", f"record {evidence.reconciled_seq}")


def _fault(result: Result | None, state: RunState, evidence: Evidence) -> str:
    """Why a result cannot count for this candidate; empty when it can."""
    if result is None:
        return "missing"
    if result.status is not Status.OK:
        return f"{result.status.value}: {result.message}"[:300]
    if result.source_sha256 != evidence.sha256:
        return "it is about another text"
    if result.problem_sha256 != state.problem_sha256:
        return "it is about another version of the problem"
    if result.profile != state.profile:
        return f"it ran under profile {result.profile}, the run's is {state.profile}"
    return ""


def _floor(result: Result | None) -> Floor | None:
    usable = result is not None and result.status is Status.OK and result.floor is not None and math.isfinite(result.floor.floor)
    return result.floor if usable and result is not None else None


def _fingerprint(result: Result | None) -> str:
    return str(result.fingerprint.get("sha256") or "") if result else ""


def _positive(*values: float) -> bool:
    return all(math.isfinite(value) and value > 0 for value in values)


def _name(sha256: str | None) -> str:
    return sha256[:12] if sha256 else "the reference"


def _yes(name: str, detail: str) -> GateCheck:
    return GateCheck(name=name, passed=True, detail=detail)


def _no(name: str, detail: str) -> GateCheck:
    return GateCheck(name=name, passed=False, detail=detail)
