"""Folding what happens to the run itself: its creation, its states, its operator's words.

Invariant: `requested` names a control until the run's own state says that it is in force.
Not for: jobs, agents or experiments.
"""

from __future__ import annotations

from state.events import (
    Note,
    NudgeAcknowledged,
    NudgeDelivered,
    NudgeQueued,
    Record,
    RunControl,
    RunCreated,
    RunResumed,
    RunStateChanged,
)
from state.folding.alerts import add_alert
from state.folding.jobs import void
from state.model import Nudge, RunState

IN_FORCE = {
    "pause": {"paused", "stopping", "stopped", "finished", "failed"},
    "resume": {"running", "stopping", "stopped", "finished", "failed"},
    "stop": {"stopped", "finished", "failed"},
}
"""States in which a requested control is no longer outstanding."""


def run_created(state: RunState, record: Record, data: RunCreated) -> None:
    """Take over what the run is about."""
    if state.run:
        add_alert(state, record, f"record {record.seq} creates the run a second time; ignored")
        return
    state.run, state.started_ts = record.run, record.ts
    state.title, state.problem, state.problem_sha256 = data.title, data.problem, data.problem_sha256
    state.problem_title, state.cases, state.device = data.problem_title, list(data.cases), data.device
    state.model, state.profile, state.gate, state.config = data.model, data.profile, data.gate, data.config


def run_resumed(state: RunState, record: Record, data: RunResumed) -> None:
    """Count the takeover and void the measurements it found cut off."""
    state.resumed += 1
    for request in data.voided:
        void(state, request)


def run_control(state: RunState, record: Record, data: RunControl) -> None:
    """Remember what was asked for."""
    already = state.status in IN_FORCE.get(data.action, set())
    state.requested = None if already else data.action


def run_state(state: RunState, record: Record, data: RunStateChanged) -> None:
    """Take over the run's state."""
    state.status, state.status_reason = data.state, data.reason
    if state.requested is not None and data.state in IN_FORCE.get(state.requested, set()):
        state.requested = None


def nudge_queued(state: RunState, record: Record, data: NudgeQueued) -> None:
    """Add an operator's message."""
    if any(nudge.id == data.nudge for nudge in state.nudges):
        add_alert(state, record, f"nudge {data.nudge} was queued twice; the second is ignored")
        return
    state.nudges.append(Nudge(id=data.nudge, text=data.text, category=data.category, seq=record.seq))


def nudge_delivered(state: RunState, record: Record, data: NudgeDelivered) -> None:
    """Note that it is part of a request."""
    _advance(state, record, data.nudge, "delivered")


def nudge_acknowledged(state: RunState, record: Record, data: NudgeAcknowledged) -> None:
    """Note that the reply to it is journalled."""
    _advance(state, record, data.nudge, "acknowledged")


def note(state: RunState, record: Record, data: Note) -> None:
    """Show warnings and alerts."""
    if data.level in ("warning", "alert"):
        add_alert(state, record, data.text, level=data.level)


def _advance(state: RunState, record: Record, name: str, to: str) -> None:
    for nudge in state.nudges:
        if nudge.id == name:
            # A delivery repeated after a crash never takes an acknowledgement back.
            nudge.state = nudge.state if nudge.state == "acknowledged" else to
            return
    add_alert(state, record, f"record {record.seq} ({record.kind}) refers to unknown nudge {name!r}; ignored")
