"""What agents read of a run's configuration, with its defaults.

Invariant: built once from the resolved configuration; a value of the wrong type is an `AgentsError`
that names the key. Not for: model clients (`agents.clients.opening`) or the daemon's own keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.errors import AgentsError
from evaluator.records import JobKind


class BadSetting(AgentsError):
    """A value of the configuration that agents cannot use."""

    code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The `[agents]` table, and the job options of `[evaluation]`."""

    n: int = 5
    """How many idea agents and workers may be at work at once."""
    workers_evaluate: bool = True
    """Whether a worker may ask for a rung 1 evaluation of its own candidates."""
    orchestrator_turns: int = 1000
    idea_turns: int = 20
    worker_turns: int = 60
    """Replies an agent may use before it counts as failed."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Job options by job kind: `[evaluation.evaluate]`, `[evaluation.ab]`, `[evaluation.check]`, ..."""

    def job_options(self, kind: JobKind) -> dict[str, Any]:
        """Options of a job of this kind; an evaluation also asks what a naive evaluator would have believed."""
        naive = {"naive": True} if kind is JobKind.EVALUATE else {}
        return {**naive, **self.options.get(kind.value, {})}


def agent_settings(config: Mapping[str, Any]) -> AgentSettings:
    """Read the resolved configuration (`run`, `evaluation` and `agents` tables; missing ones are empty)."""
    table = config.get("agents") or {}
    evaluation = config.get("evaluation") or {}
    kinds = {kind.value: dict(evaluation[kind.value]) for kind in JobKind if isinstance(evaluation.get(kind.value), Mapping)}
    return AgentSettings(
        n=_count(table, "n", 5),
        workers_evaluate=bool(table.get("workers_evaluate", True)),
        orchestrator_turns=_count(table, "orchestrator_turns", 1000),
        idea_turns=_count(table, "idea_turns", 20),
        worker_turns=_count(table, "worker_turns", 60),
        options=kinds,
    )


def _count(table: Mapping[str, Any], key: str, default: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadSetting(f"agents.{key} is {value!r}; it must be a whole number from 1")
    return value
