"""Folding ideas and experiments from proposal to retention.

Invariant: correctness, performance, hypothesis and retention are four fields, each set by its own
evidence; an experiment's stage never goes back once it is reported.
Not for: measuring (`state.folding.jobs`).
"""

from __future__ import annotations

from state.events import (
    Banked,
    CandidateSubmitted,
    ExperimentOpened,
    ExperimentReconciled,
    ExperimentReported,
    GateDecided,
    IdeaProposed,
    Promoted,
    Record,
    WorldModelEdited,
)
from state.folding.alerts import add_alert, experiment_for
from state.folding.jobs import EARLY_STAGES
from state.model import Experiment, Idea, Promotion, RunState


def idea_proposed(state: RunState, record: Record, data: IdeaProposed) -> None:
    """Add the idea."""
    if data.idea in state.ideas:
        add_alert(state, record, f"idea {data.idea} was proposed twice; the second is ignored")
        return
    state.ideas[data.idea] = Idea(
        id=data.idea,
        title=data.title,
        category=data.category,
        rationale=data.rationale,
        beliefs=list(data.beliefs),
        actor=record.actor,
        seq=record.seq,
    )


def experiment_opened(state: RunState, record: Record, data: ExperimentOpened) -> None:
    """Add the experiment with its frozen prediction."""
    if data.experiment in state.experiments:
        add_alert(state, record, f"experiment {data.experiment} was opened twice; the second is ignored")
        return
    state.experiments[data.experiment] = Experiment(
        id=data.experiment,
        title=data.title,
        idea=data.idea,
        base=data.base,
        champion=data.champion,
        prediction=list(data.prediction),
        prediction_sha256=data.prediction_sha256,
        claims=list(data.claims),
        parts=list(data.parts),
        opened_seq=record.seq,
        last_seq=record.seq,
    )
    if data.idea in state.ideas:
        state.ideas[data.idea].experiments.append(data.experiment)
    elif data.idea:
        add_alert(state, record, f"experiment {data.experiment} names unknown idea {data.idea!r}")


def candidate_submitted(state: RunState, record: Record, data: CandidateSubmitted) -> None:
    """Note the candidate."""
    experiment = experiment_for(state, record, data.experiment)
    if experiment is None:
        return
    if data.sha256 not in experiment.candidates:
        experiment.candidates.append(data.sha256)
    if experiment.stage in EARLY_STAGES:
        experiment.stage = "building"


def experiment_reported(state: RunState, record: Record, data: ExperimentReported) -> None:
    """Take the worker's conclusion over."""
    experiment = experiment_for(state, record, data.experiment)
    if experiment is None:
        return
    experiment.conclusion, experiment.report, experiment.final = data.conclusion, data.report, data.final
    if experiment.stage in EARLY_STAGES:
        experiment.stage = "reported"


def experiment_reconciled(state: RunState, record: Record, data: ExperimentReconciled) -> None:
    """Put prediction beside outcome."""
    experiment = experiment_for(state, record, data.experiment)
    if experiment is None:
        return
    experiment.stage = "reconciled"
    experiment.reconciliation, experiment.surprise = list(data.cases), data.surprise
    experiment.explanation, experiment.claim_changes = data.explanation, list(data.changes)
    experiment.correctness, experiment.performance = data.correctness, data.performance
    experiment.hypothesis = data.hypothesis


def banked(state: RunState, record: Record, data: Banked) -> None:
    """Keep the candidate for a stack."""
    experiment = experiment_for(state, record, data.experiment)
    if experiment is None or experiment.retention == "promoted":
        return
    experiment.retention = "banked"
    if data.experiment not in state.bank:
        state.bank.append(data.experiment)


def gate_decided(state: RunState, record: Record, data: GateDecided) -> None:
    """Take the gate's answer over; the promotion itself is a record of its own."""
    experiment = experiment_for(state, record, data.experiment)
    if experiment is None:
        return
    experiment.gate_checks, experiment.gate_reason = list(data.checks), data.reason
    experiment.not_checked = list(data.not_checked)
    if not data.promoted and experiment.retention == "none":
        experiment.retention = "refused"


def promotion(state: RunState, record: Record, data: Promoted) -> None:
    """Make the candidate the champion."""
    if data.number != len(state.promotions) + 1 or data.previous != state.champion:
        add_alert(state, record, f"promotion {data.number} does not follow from promotion {len(state.promotions)}", level="alert")
    state.promotions.append(
        Promotion(
            number=data.number,
            experiment=data.experiment,
            sha256=data.sha256,
            previous=data.previous,
            rho=data.rho,
            speedup=data.speedup,
            champion_us=data.champion_us,
            seq=record.seq,
            ts=record.ts,
            not_checked=list(data.not_checked),
        )
    )
    state.champion, state.champion_us, state.speedup = data.sha256, data.champion_us, data.speedup
    experiment = experiment_for(state, record, data.experiment)
    used = {data.experiment, *(experiment.parts if experiment else ())}
    state.bank = [name for name in state.bank if name not in used]
    if experiment is not None:
        experiment.retention = "promoted"


def world_model_edited(state: RunState, record: Record, data: WorldModelEdited) -> None:
    """Take the new document over."""
    state.world_model_sha256, state.world_model_lines = data.sha256, data.lines
    state.world_model_text = data.text
    state.world_model_history.append(record.seq)
