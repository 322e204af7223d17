"""Prediction beside outcome for one experiment: finds its measurements, lets `state.reconciliation` compute.

The best measurement counts: the A/B against the champion that was predicted against, else the protected
evaluation compared with that champion's own evaluation.
Invariant: figures come from journalled results alone. Not for: explanations or changes of claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agents.ports import RunPort
from evaluator.records import Evaluation, Status, Verdict
from evaluator.records import decode as decode_record
from state.events import CaseReconciliation
from state.model import Experiment, Outcome
from state.reconciliation import (
    Measured,
    correctness_word,
    from_evaluations,
    from_verdict,
    hypothesis_word,
    largest_surprise,
    performance_word,
    reconcile,
    requires_world_model_change,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """The arithmetic of one reconciliation."""

    lines: list[CaseReconciliation]
    surprise: float | None
    source: str
    """`ab`, `evaluation` or `none`."""
    correctness: str
    performance: str
    hypothesis: str

    @property
    def needs_change(self) -> bool:
        """Whether the experiment may only close with a change of the world model."""
        return requires_world_model_change(self.surprise)

    def view(self) -> dict[str, Any]:
        """What the orchestrator gets to see."""
        return {
            "reconciliation": msgspec.to_builtins(self.lines),
            "surprise": self.surprise,
            "needs_claim_change": self.needs_change,
            "source": self.source,
            "hypothesis": self.hypothesis,
        }


async def reckon(port: RunPort, experiment: Experiment) -> Reckoning:
    """Compute what reconciling `experiment` now would say."""
    verdict = await _verdict(port, experiment)
    measured, source = await _measured(port, experiment, verdict)
    lines = reconcile(experiment.prediction, measured, floor_by_case=port.state.floor_by_case)
    return Reckoning(
        lines=lines,
        surprise=largest_surprise(lines),
        source=source,
        correctness=correctness_word(_status(experiment)),
        performance=performance_word(verdict, measured, floor=port.state.floor or 0.0),
        hypothesis=hypothesis_word(lines),
    )


async def _measured(port: RunPort, experiment: Experiment, verdict: Verdict | None) -> tuple[Mapping[str, Measured], str]:
    if verdict is not None and verdict.champion_sha256 == experiment.champion:
        return from_verdict(verdict), "ab"
    mine = await _evaluation(port, experiment.evaluation)
    if mine is None:
        return {}, "none"
    if experiment.champion is None:
        return from_evaluations(mine, None), "evaluation"
    theirs = await _evaluation(port, _evaluation_of(port, experiment.champion))
    return (from_evaluations(mine, theirs), "evaluation") if theirs is not None else ({}, "none")


def _evaluation_of(port: RunPort, sha256: str) -> Outcome | None:
    outcomes = (e.evaluation for e in port.state.experiments.values())
    return next((o for o in outcomes if o is not None and o.sha256 == sha256 and o.status == "ok"), None)


async def _evaluation(port: RunPort, outcome: Outcome | None) -> Evaluation | None:
    if outcome is None or outcome.status != "ok":
        return None
    data = (await port.read(outcome.seq)).data["result"].get("evaluation")
    return decode_record(Evaluation, data) if data is not None else None


async def _verdict(port: RunPort, experiment: Experiment) -> Verdict | None:
    if experiment.verdict is None or experiment.verdict.decision is None:
        return None
    data = (await port.read(experiment.verdict.seq)).data["result"].get("verdict")
    return decode_record(Verdict, data) if data is not None else None


def _status(experiment: Experiment) -> Status | None:
    outcome = experiment.evaluation
    if outcome is not None:
        return Status(outcome.status)
    check = experiment.check
    return Status(check.status) if check is not None and check.status != "ok" else None
