"""What a tool of one agent may reach: the run, who it acts for, the settings, the staff.

Also the look-ups every tool shares; each refuses with words a model can act on.
Invariant: nothing here writes. Not for: effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agents.errors import ToolError
from agents.ports import RunPort
from agents.settings import AgentSettings
from state.model import Experiment


class Staff(Protocol):
    """Who puts agents to work."""

    def start(self, agent: str) -> None:
        """Run the conversation of a started agent as a task; nothing happens if it already runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where one agent works."""

    port: RunPort
    agent: str
    """Id of the agent, the actor of what it records."""
    settings: AgentSettings
    staff: Staff
    experiment: str | None = None
    """The worker's own experiment."""


def busy_agents(port: RunPort) -> list[str]:
    """Idea agents and workers at work."""
    return [agent.id for agent in port.state.agents.values() if agent.state == "working" and agent.role != "orchestrator"]


def find_experiment(port: RunPort, name: str) -> Experiment:
    """The experiment of this id."""
    experiment = port.state.experiments.get(name)
    if experiment is None:
        known = ", ".join(port.state.experiments) or "none yet"
        raise ToolError(f"there is no experiment `{name}`", f"experiments: {known}")
    return experiment


def standing_candidate(experiment: Experiment) -> str:
    """sha256 of the candidate an experiment stands for: its final one, else the latest."""
    sha256 = experiment.final or (experiment.candidates[-1] if experiment.candidates else None)
    if sha256 is None:
        raise ToolError(
            f"{experiment.id} has no candidate", "its worker must submit one first; an experiment that failed is reconciled without"
        )
    return sha256


def find_source(port: RunPort, name: str) -> str | None:
    """sha256 that `champion`, `reference`, an experiment's id or (the start of) a sha256 stands for; None is the reference."""
    state = port.state
    if name in ("champion", ""):
        return state.champion
    if name == "reference":
        return None
    if name in state.experiments:
        return standing_candidate(state.experiments[name])
    known = {sha256 for e in state.experiments.values() for sha256 in e.candidates}
    matches = [sha256 for sha256 in known if len(name) >= 6 and sha256.startswith(name)]
    if len(matches) != 1:
        raise ToolError(
            f"`{name}` names no candidate", "use `champion`, `reference`, an experiment's id or the first characters of a sha256"
        )
    return matches[0]


def earlier_effect(port: RunPort, kind: str, cause: str) -> int | None:
    """seq of the record of this kind that this call already caused, before a crash."""
    return port.state.effects.get(f"{kind} {cause}")
