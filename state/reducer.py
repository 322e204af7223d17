"""The one function that turns records into a run's state.

`apply` folds one record in; `fold` folds them all. The daemon, the console, a replay and a rebuild
all use these, so a state derived from the journal after a kill equals the live one.
Invariant: deterministic and total: unknown kinds are counted, unreadable data and unknown references
are alerts, and a record that was already folded in (seq not above the state's) changes nothing.
Not for: checking the journal (`state.verification`) or noticing gaps (whoever fetches records does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from state.events import KINDS, Record
from state.folding import agents, experiments, jobs, run
from state.folding.alerts import add_alert
from state.model import RunState
from state.outcome import FinishedSummary

Handler = Callable[[RunState, Record, Any], None]

HANDLERS: dict[str, Handler] = {
    "run.created": run.run_created,
    "run.resumed": run.run_resumed,
    "run.control": run.run_control,
    "run.state": run.run_state,
    "job.started": jobs.job_started,
    "job.finished": jobs.job_finished,
    "job.voided": jobs.job_voided,
    "agent.started": agents.agent_started,
    "agent.reply": agents.agent_reply,
    "agent.result": agents.agent_result,
    "agent.finished": agents.agent_finished,
    "idea.proposed": experiments.idea_proposed,
    "experiment.opened": experiments.experiment_opened,
    "candidate.submitted": experiments.candidate_submitted,
    "experiment.reported": experiments.experiment_reported,
    "experiment.reconciled": experiments.experiment_reconciled,
    "world_model.edited": experiments.world_model_edited,
    "experiment.banked": experiments.banked,
    "gate.decided": experiments.gate_decided,
    "promotion": experiments.promotion,
    "nudge.queued": run.nudge_queued,
    "nudge.delivered": run.nudge_delivered,
    "nudge.acknowledged": run.nudge_acknowledged,
    "note": run.note,
}

# A result is read through its summary, so raw trials are never built.
_SHAPES: dict[str, type[msgspec.Struct]] = {**KINDS, "job.finished": FinishedSummary}


def apply(state: RunState, record: Record) -> None:
    """Fold one record into `state`, in place."""
    if record.seq <= state.seq:
        return
    state.seq, state.last_ts = record.seq, record.ts
    state.records += 1
    handler = HANDLERS.get(record.kind)
    if handler is None:
        state.unknown_kinds[record.kind] = state.unknown_kinds.get(record.kind, 0) + 1
    else:
        _handle(state, record, handler)
    cause = record.data.get("cause")
    if cause is not None:
        state.effects.setdefault(f"{record.kind} {cause}", record.seq)


def fold(records: Iterable[Record]) -> RunState:
    """The state after `records`, from nothing."""
    state = RunState()
    for record in records:
        apply(state, record)
    return state


def _handle(state: RunState, record: Record, handler: Handler) -> None:
    try:
        data = msgspec.convert(record.data, _SHAPES[record.kind])
    except msgspec.ValidationError as error:
        add_alert(state, record, f"record {record.seq} ({record.kind}) cannot be read: {error}", level="alert")
        return
    handler(state, record, data)
