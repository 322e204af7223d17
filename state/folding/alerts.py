"""Lines in the state for what an operator should see.

Invariant: bounded; the oldest go first.
Not for: records of kind `note` with level `info`, which change no state.
"""

from __future__ import annotations

from state.events import Record
from state.model import Agent, Alert, Experiment, RunState

ALERTS_KEPT = 200
TEXT_CHARS = 500


def add_alert(state: RunState, record: Record, text: str, *, level: str = "warning") -> None:
    """Note `text` at this record."""
    state.alerts.append(Alert(seq=record.seq, level=level, text=text[:TEXT_CHARS]))
    if len(state.alerts) > ALERTS_KEPT:
        del state.alerts[:-ALERTS_KEPT]


def experiment_for(state: RunState, record: Record, name: str) -> Experiment | None:
    """The experiment that a record is about, marked as touched; an alert and None when it is unknown."""
    experiment = state.experiments.get(name)
    if experiment is None:
        add_alert(state, record, f"record {record.seq} ({record.kind}) refers to unknown experiment {name!r}; ignored")
    else:
        experiment.last_seq = record.seq
    return experiment


def agent_for(state: RunState, record: Record, name: str) -> Agent | None:
    """The agent that a record is about, marked as touched; an alert and None when it is unknown."""
    agent = state.agents.get(name)
    if agent is None:
        add_alert(state, record, f"record {record.seq} ({record.kind}) refers to unknown agent {name!r}; ignored")
    else:
        agent.last_seq = record.seq
    return agent
