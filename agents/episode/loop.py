"""The loop of an episode: at most five replies, CHECK or SUBMIT, one protected evaluation.

The fifth reply is submitted whatever its ACTION if it holds one code block; else the last version that
passed CHECK; if none passed, the episode fails without a protected evaluation. Everything is journalled
before it is acted on, so `run_episode` called again after a kill goes on where the records end.
Invariant: the attempts in memory are what the journal rebuilds; the protected evaluation has one cause
and so one request id. Not for: choosing problems or splits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from agents.asking import EvaluatorFailed, ask, job_for, source_of
from agents.bounds import REPLY_CHARS, bad_characters, clip, line
from agents.clients.interface import ModelClient, ModelRequest
from agents.episode.feedback import check_feedback, format_feedback
from agents.episode.lifecycle import REPLIES, LifecycleEvent, boundary, due
from agents.episode.memory import Memory, NoMemory
from agents.episode.parsing import Parsed, parse_reply
from agents.episode.report import Outcome, outcome
from agents.episode.transcript import Attempt, best, messages
from agents.errors import AgentsError
from agents.ports import RunPort
from agents.prompting import prompt_facts, system_prompt
from agents.settings import AgentSettings
from evaluator.records import JobKind, Result, Status
from state.events import AgentFinished, AgentReply, AgentResult, AgentStarted


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTask:
    """One episode to run."""

    episode: str
    """Its id within the run."""
    model: str
    """Name given to `clients` for every reply that no model swap takes."""
    lifecycle: tuple[LifecycleEvent, ...] = ()
    memory: Memory = field(default_factory=NoMemory)
    probe: bool = False
    """A probe's trajectory carries only the official report."""
    settings: AgentSettings = field(default_factory=AgentSettings)


async def run_episode(port: RunPort, clients: Callable[[str], ModelClient], task: EpisodeTask) -> Outcome:
    """Run the episode, or take it up from the journal; `clients` gives the client of a model's name."""
    ended = await _Episode(port, clients, task).run()
    await task.memory.remember(port.state.problem, ended.trajectory)
    return ended


class _Episode:
    def __init__(self, port: RunPort, clients: Callable[[str], ModelClient], task: EpisodeTask) -> None:
        self._port = port
        self._clients = clients
        self._task = task
        self._agent = f"episode:{task.episode}"
        self._context = ""
        self._attempts: list[Attempt] = []
        self._replies = 0

    async def run(self) -> Outcome:
        result, why, survived = None, "", True
        try:
            await self._start()
            await self._restore()
            source = await self._converse()
            why = "" if source else "no version passed CHECK and the last reply held no single code block"
            result = await self._judge(JobKind.EVALUATE, source, name="submit") if source else None
        except (AgentsError, EvaluatorFailed) as error:
            why, survived = line(str(error), 400), False
        return await self._end(result, why=why, survived=survived)

    async def _converse(self) -> str | None:
        """The source that is submitted, or None."""
        while True:
            if self._attempts and (submitted := self._submitted(self._attempts[-1])) is not None:
                return submitted
            if len(self._attempts) == REPLIES:
                kept = best(self._attempts)
                return kept.parsed.code if kept is not None else None
            await self._next()

    def _submitted(self, attempt: Attempt) -> str | None:
        """The attempt's code when it is the one that is submitted."""
        last = attempt.turn == REPLIES - 1
        asked = attempt.parsed.action == "SUBMIT" and not attempt.parsed.problems
        return attempt.parsed.code if last or asked else None

    async def _next(self) -> None:
        turn = len(self._attempts)
        model = self._task.model
        for event in due(self._task.lifecycle, reply=turn):
            model = event.to or model if event.type == "model_swap" else model
            if event.type == "crash":
                await self._restore()
        await self._port.checkpoint(self._agent)
        request = ModelRequest(
            role="episode",
            agent=self._agent,
            turn=turn,
            system=self._system(),
            messages=messages(self._context, self._attempts, self._task.lifecycle),
        )
        reply = await self._clients(model).reply(request)
        text = clip(reply.text, REPLY_CHARS)
        said = AgentReply(agent=self._agent, turn=turn, text=text, usage=reply.usage, model=reply.model)
        await self._port.record("agent.reply", self._agent, said)
        await self._take(turn, text)

    async def _take(self, turn: int, text: str) -> None:
        """Act on a journalled reply."""
        self._replies = turn + 1
        parsed = _checked(parse_reply(text))
        if parsed.action == "CHECK" and parsed.code is not None and not parsed.problems and turn < REPLIES - 1:
            result = await self._judge(JobKind.CHECK, parsed.code, name=f"check{turn}")
            attempt = Attempt(
                turn=turn,
                text=text,
                parsed=parsed,
                feedback=check_feedback(result, turn=turn),
                sha256=result.source_sha256,
                passed=result.status is Status.OK,
            )
            await self._answer(attempt)
        else:
            feedback = format_feedback(parsed, turn=turn) if parsed.problems and turn < REPLIES - 1 else ""
            attempt = Attempt(turn=turn, text=text, parsed=parsed, feedback=feedback)
        self._attempts.append(attempt)

    async def _answer(self, attempt: Attempt) -> None:
        call = f"check{attempt.turn}"
        if f"{self._agent}/{call}" not in self._port.state.results:
            content = {"passed": attempt.passed, "feedback": attempt.feedback}
            result = AgentResult(agent=self._agent, call=call, name="check", ok=True, content=content)
            await self._port.record("agent.result", self._agent, result)

    async def _start(self) -> None:
        remembered = "" if self._agent in self._port.state.agents else await self._task.memory.context(self._port.state.problem)
        problem = f"# Problem\n```python\n{self._port.reference_source()}\n```"
        started = AgentStarted(
            agent=self._agent,
            role="episode",
            task=line(f"one episode on {self._port.state.problem}"),
            context="\n\n".join(part for part in (remembered, problem) if part),
            model=self._task.model,
            cause=f"run/{self._agent}",
        )
        record = await self._port.record("agent.started", "daemon", started)
        self._context = msgspec.convert(record.data, AgentStarted).context

    async def _restore(self) -> None:
        """Drop everything in memory and rebuild it from the journal."""
        self._attempts, self._replies = [], 0
        for record in await self._port.records(kinds=frozenset({"agent.reply"})):
            if record.data.get("agent") == self._agent:
                reply = msgspec.convert(record.data, AgentReply)
                await self._take(reply.turn, reply.text)

    def _system(self) -> str:
        return system_prompt("episode", {**prompt_facts(self._port.state), "gate": "none, this is an episode"})

    async def _judge(self, kind: JobKind, text: str, *, name: str) -> Result:
        await self._port.store(text)
        job = job_for(self._port, kind, candidate=source_of(text), options=self._task.settings.job_options(kind))
        return await ask(self._port, job, owner=self._task.episode, experiment=None, purpose=name, cause=f"{self._agent}/{name}")

    async def _end(self, result: Result | None, *, why: str, survived: bool) -> Outcome:
        if self._port.state.agents[self._agent].state == "working":
            finished = AgentFinished(agent=self._agent, outcome="done" if survived else "failed", detail=why)
            await self._port.record("agent.finished", self._agent, finished)
        ended = outcome(
            result,
            why=why,
            compiled_us=self._port.state.compiled_us,
            boundary=boundary(self._task.lifecycle, replies=self._replies, survived=survived),
            attempts=[attempt.view() for attempt in self._attempts],
        )
        if not self._task.probe:
            return ended
        return msgspec.structs.replace(ended, trajectory={"official_report": ended.trajectory["official_report"]})


def _checked(parsed: Parsed) -> Parsed:
    """A block that cannot be a candidate is a problem of the reply."""
    why = bad_characters(parsed.code) if parsed.code is not None else None
    return parsed if why is None else Parsed(code=None, action=parsed.action, problems=(*parsed.problems, why))
