"""The promotion gate: what must be on record before a candidate may be the champion.

Pure: it reads the run's state and records and answers; nothing is measured here and no model is asked.
This is the *reduced* gate of the first version: it names in every answer what it did not check.
Invariant: `promoted` only if every check passed, each on records of this run, for exactly the text that
would be promoted, against exactly the champion of this moment.
Not for: journalling the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from daemon.gate_evidence import KINDS, Evidence, collect
from evaluator.records import Decision, Floor, Result, Status, Verdict
from state.events import GateCheck, GateDecided, Promoted, Record
from state.model import Experiment, RunState
from state.prediction import prediction_sha256

__all__ = ["KINDS", "NAME", "NOT_CHECKED", "ROBUSTNESS_PARTS", "decide", "decided_of", "promotion_of"]

NAME = "reduced gate (first light)"

ROBUSTNESS_PARTS = ("seeds", "repeated calls", "input mutation", "sizes")
"""Parts that must have run and passed."""

NOT_CHECKED = (
    "value regimes",
    "permuted batches",
    "poisoned allocator",
    "memory checker",
    "policy",
    "alpha spending over promotions",
    "champion drift",
)
"""What the whole gate will check and this one does not."""


def decide(state: RunState, records: Iterable[Record], *, experiment: str, cause: str) -> tuple[GateDecided, Promoted | None]:
    """Answer a request to promote `experiment`: the decision, and the promotion where there is one."""
    evidence = collect(records, experiment=experiment, sha256=_candidate_of(state.experiments.get(experiment)))
    checks = _checks(state, evidence, experiment)
    failed = [check for check in checks if not check.passed]
    reason = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "every part of the reduced gate passed"
    standing = state.experiments.get(experiment)
    decided = GateDecided(
        experiment=experiment,
        sha256=evidence.sha256 or "",
        gate=NAME,
        promoted=not failed,
        checks=checks,
        not_checked=_not_checked(evidence),
        reason=reason[:2000],
        cause=cause,
        correctness="correct" if _passed(checks, "evaluation") else (standing.correctness if standing else "untested"),
        performance=_performance(evidence.verdict),
        hypothesis=standing.hypothesis if standing else "untested",
        retention=_retention(standing, promoted=not failed),
    )
    return decided, (_promotion(state, evidence, decided) if decided.promoted else None)


def decided_of(record: Record) -> GateDecided:
    """The answer that a `gate.decided` record holds."""
    return msgspec.convert(record.data, GateDecided)


def promotion_of(state: RunState, records: Iterable[Record], decided: GateDecided) -> Promoted:
    """The promotion that belongs to a decision already journalled."""
    return _promotion(state, collect(records, experiment=decided.experiment, sha256=decided.sha256), decided)


def _candidate_of(experiment: Experiment | None) -> str | None:
    """The text the experiment stands for: what its report names, else the last one submitted."""
    if experiment is None:
        return None
    if experiment.stage in ("reported", "reconciled"):
        return experiment.final
    return experiment.final or (experiment.candidates[-1] if experiment.candidates else None)


def _checks(state: RunState, evidence: Evidence, experiment: str) -> list[GateCheck]:
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
    ran = {part.name for part in report.parts if part.tests > 0}
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


def _promotion(state: RunState, evidence: Evidence, decided: GateDecided) -> Promoted:
    assert evidence.evaluation is not None
    assert evidence.evaluation.evaluation is not None
    assert evidence.verdict is not None
    assert evidence.verdict.verdict is not None
    report = evidence.evaluation.evaluation
    assert report.speedup is not None
    return Promoted(
        number=len(state.promotions) + 1,
        experiment=decided.experiment,
        sha256=decided.sha256,
        previous=state.champion,
        rho=evidence.verdict.verdict.rho,
        speedup=report.speedup,
        champion_us=_geomean([timing.cand_us for timing in report.timings]),
        gate=decided.gate,
        not_checked=decided.not_checked,
    )


def _not_checked(evidence: Evidence) -> list[str]:
    reported = evidence.robustness.robustness.not_checked if evidence.robustness and evidence.robustness.robustness else ()
    return list(dict.fromkeys((*NOT_CHECKED, *reported)))


def _performance(result: Result | None) -> str:
    verdict: Verdict | None = result.verdict if result else None
    return verdict.decision.value if verdict else "untested"


def _retention(experiment: Experiment | None, *, promoted: bool) -> str:
    if promoted:
        return "promoted"
    return experiment.retention if experiment and experiment.retention != "none" else "refused"


def _floor(result: Result | None) -> Floor | None:
    usable = result is not None and result.status is Status.OK and result.floor is not None and math.isfinite(result.floor.floor)
    return result.floor if usable and result is not None else None


def _fingerprint(result: Result | None) -> str:
    return str(result.fingerprint.get("sha256") or "") if result else ""


def _positive(*values: float) -> bool:
    return all(math.isfinite(value) and value > 0 for value in values)


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _passed(checks: Sequence[GateCheck], name: str) -> bool:
    return any(check.passed for check in checks if check.name == name)


def _name(sha256: str | None) -> str:
    return sha256[:12] if sha256 else "the reference"


def _yes(name: str, detail: str) -> GateCheck:
    return GateCheck(name=name, passed=True, detail=detail)


def _no(name: str, detail: str) -> GateCheck:
    return GateCheck(name=name, passed=False, detail=detail)
