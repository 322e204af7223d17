"""A whole search: the orchestrator's conversation, and its subagents as tasks of one group.

`run_search` begins a search or takes it up from the journal after a kill: the orchestrator goes on where
its records end, and so does every subagent that had not finished.
Invariant: every task belongs to the group; a subagent that fails ends with `agent.finished` (and its
experiment with a report), never the run; an error of the orchestrator ends the run.
Not for: preparing a run (qualification, baseline, floor) or its controls; both are the daemon's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agents.bounds import line
from agents.briefs import search_brief
from agents.clients.interface import ClientFactory
from agents.conversation import Conversation
from agents.errors import AgentsError
from agents.ports import RunPort
from agents.roles import role_of
from agents.settings import AgentSettings, agent_settings
from agents.tools.desk import Desk
from state.events import AgentFinished, AgentStarted, ExperimentReported

ORCHESTRATOR = "orchestrator"


async def run_search(port: RunPort, clients: ClientFactory, *, settings: Mapping[str, Any] | None = None) -> None:
    """Drive the search until the orchestrator finishes it.

    `clients` gives the model client of a role; `settings` is the run's resolved configuration
    (default: `port.settings()`). Returns when the search is finished, at once if it was before; raises
    `AgentsError` when the orchestrator cannot go on, `asyncio.CancelledError` when the run stops.
    """
    search = _Search(port, clients, agent_settings(port.settings() if settings is None else settings))
    try:
        async with asyncio.TaskGroup() as group:
            await search.run(group)
    except BaseExceptionGroup as failures:
        raise _single(failures) from None


def _single(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error of a person's concern, or the group itself when it is a bug."""
    known, others = failures.split(AgentsError)
    return known.exceptions[0] if known is not None and others is None and len(known.exceptions) == 1 else failures


class _Search:
    """One process's part of a search; everything that lasts is in the journal."""

    def __init__(self, port: RunPort, clients: ClientFactory, settings: AgentSettings) -> None:
        self._port = port
        self._clients = clients
        self._settings = settings
        self._group: asyncio.TaskGroup | None = None
        self._started: set[str] = set()

    async def run(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        await self._open()
        for agent in [a.id for a in self._port.state.agents.values() if a.state == "working" and a.role != ORCHESTRATOR]:
            self.start(agent)
        if self._port.state.agents[ORCHESTRATOR].state == "working":
            await (await self._conversation(ORCHESTRATOR)).run()

    def start(self, agent: str) -> None:
        """Run the conversation of a started agent as a task, once."""
        assert self._group is not None
        if agent not in self._started and self._port.state.agents[agent].state == "working":
            self._started.add(agent)
            self._group.create_task(self._subagent(agent), name=agent)

    async def _open(self) -> None:
        if ORCHESTRATOR in self._port.state.agents:
            return
        started = AgentStarted(
            agent=ORCHESTRATOR,
            role=ORCHESTRATOR,
            task=line(f"make {self._port.state.problem} faster"),
            context=search_brief(self._port),
            cause="run/orchestrator",
        )
        await self._port.record("agent.started", "daemon", started)

    async def _conversation(self, agent: str) -> Conversation:
        state = self._port.state.agents[agent]
        desk = Desk(port=self._port, agent=agent, settings=self._settings, staff=self, experiment=state.experiment)
        return await Conversation.resume(self._port, self._clients(state.role), role_of(state.role, desk), agent=agent)

    async def _subagent(self, agent: str) -> None:
        try:
            await (await self._conversation(agent)).run()
        except AgentsError as error:
            await self._failed(agent, error.message)

    async def _failed(self, agent: str, why: str) -> None:
        experiment = self._port.state.agents[agent].experiment
        if experiment is not None and not self._port.state.experiments[experiment].conclusion:
            reported = ExperimentReported(
                experiment=experiment,
                conclusion=line(f"the worker failed: {why}", 240),
                report="No report: its conversation ended before it could give one.",
                final=None,
                cause=f"{agent}/failed",
            )
            await self._port.record("experiment.reported", agent, reported)
        await self._port.record("agent.finished", agent, AgentFinished(agent=agent, outcome="failed", detail=line(why, 400)))
