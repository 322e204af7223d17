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

from daemon.gate_checks import OPTIONAL_PARTS, ROBUSTNESS_PARTS, checks
from daemon.gate_evidence import KINDS, Evidence, collect
from evaluator.records import Result, Verdict
from state.events import GateCheck, GateDecided, Promoted, Record
from state.model import Experiment, RunState

__all__ = ["KINDS", "NAME", "NOT_CHECKED", "ROBUSTNESS_PARTS", "decide", "decided_of", "promotion_of"]

NAME = "reduced gate (first light)"

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
    found = checks(state, evidence, experiment)
    failed = [check for check in found if not check.passed]
    reason = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "every part of the reduced gate passed"
    standing = state.experiments.get(experiment)
    decided = GateDecided(
        experiment=experiment,
        sha256=evidence.sha256 or "",
        gate=NAME,
        promoted=not failed,
        checks=found,
        not_checked=_not_checked(evidence),
        reason=reason[:2000],
        cause=cause,
        correctness="correct" if _passed(found, "evaluation") else (standing.correctness if standing else "untested"),
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
    report = evidence.robustness.robustness if evidence.robustness else None
    if report is None:
        return list(NOT_CHECKED)
    nothing_to_run = [f"{part.name} (the problem declares none)" for part in report.parts if part.name in OPTIONAL_PARTS and not part.tests]
    return list(dict.fromkeys((*NOT_CHECKED, *report.not_checked, *nothing_to_run)))


def _performance(result: Result | None) -> str:
    verdict: Verdict | None = result.verdict if result else None
    return verdict.decision.value if verdict else "untested"


def _retention(experiment: Experiment | None, *, promoted: bool) -> str:
    if promoted:
        return "promoted"
    return experiment.retention if experiment and experiment.retention != "none" else "refused"


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _passed(checks: Sequence[GateCheck], name: str) -> bool:
    return any(check.passed for check in checks if check.name == name)
