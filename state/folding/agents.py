"""Folding model conversations: who works, how far, at what cost.

Invariant: a total that any reply left unknown stays unknown (None), never a smaller number.
Not for: the conversation itself, which is rebuilt from the records.
"""

from __future__ import annotations

from state.events import AgentFinished, AgentReply, AgentResult, AgentStarted, Record
from state.folding.alerts import add_alert, agent_for, experiment_for
from state.model import Agent, RunState

LAST_WORDS_CHARS = 240


def agent_started(state: RunState, record: Record, data: AgentStarted) -> None:
    """Add the conversation; a second start of the same one takes it up again."""
    known = state.agents.get(data.agent)
    if known is not None:
        known.state, known.last_seq = "working", record.seq
        return
    state.agents[data.agent] = Agent(
        id=data.agent,
        role=data.role,
        task=data.task,
        context=data.context,
        model=data.model,
        experiment=data.experiment,
        started_seq=record.seq,
        last_seq=record.seq,
    )
    if data.experiment is not None:
        experiment = experiment_for(state, record, data.experiment)
        if experiment is not None and data.role == "worker":
            experiment.worker = data.agent


def agent_reply(state: RunState, record: Record, data: AgentReply) -> None:
    """Count the turn and its tokens."""
    usage = data.usage
    state.tokens_in = _add(state.tokens_in, usage.input_tokens)
    state.tokens_out = _add(state.tokens_out, usage.output_tokens)
    state.cost_usd = None if state.cost_usd is None or usage.cost_usd is None else state.cost_usd + usage.cost_usd
    agent = agent_for(state, record, data.agent)
    if agent is None:
        return
    agent.turns += 1
    agent.input_tokens = _add(agent.input_tokens, usage.input_tokens)
    agent.output_tokens = _add(agent.output_tokens, usage.output_tokens)
    agent.model = data.model or agent.model
    # A reply may be long; only its beginning is looked at.
    agent.last_words = " ".join(data.text[: 4 * LAST_WORDS_CHARS].split())[:LAST_WORDS_CHARS] or agent.last_words


def agent_result(state: RunState, record: Record, data: AgentResult) -> None:
    """Remember where the answer to this call is."""
    state.results.setdefault(f"{data.agent}/{data.call}", record.seq)
    agent_for(state, record, data.agent)


def agent_finished(state: RunState, record: Record, data: AgentFinished) -> None:
    """Close the conversation."""
    agent = agent_for(state, record, data.agent)
    if agent is None:
        return
    agent.state = data.outcome
    if data.outcome == "failed":
        add_alert(state, record, f"{data.agent} failed: {data.detail or 'no reason given'}")


def _add(total: int | None, count: int | None) -> int | None:
    return None if total is None or count is None else total + count
