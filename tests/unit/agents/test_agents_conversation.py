"""One conversation: what is journalled, what is refused, what is rebuilt."""

import msgspec
import pytest
from port import FakePort, Journal

from agents.clients.interface import ModelReply
from agents.conversation import Conversation, Role
from agents.errors import AgentGaveUp, ToolError
from agents.history import NO_CALL, History
from agents.tools.tool import Tool, ToolInput, toolbox
from state.events import AgentReply, AgentStarted, NudgeQueued, ToolCall


class Ask(ToolInput, frozen=True, kw_only=True):
    """A question."""

    text: str
    times: int = 1
    parts: list[dict[str, int]] = []


async def answer(asked, cause):
    if asked.text == "no":
        raise ToolError("not that", "ask something else")
    return {"echo": asked.text * asked.times, "cause": cause}


TOOLS = toolbox(
    Tool(name="ask", about="asks", takes=Ask, run=answer),
    Tool(name="stop", about="stops", takes=Ask, run=answer, ends=True),
)


class Replies:
    """Answers with the given replies and keeps the requests."""

    def __init__(self, *replies):
        self.replies = replies
        self.requests = []

    async def reply(self, request):
        self.requests.append(request)
        return self.replies[request.turn]


def says(*calls, text="t"):
    return ModelReply(text=text, calls=tuple(ToolCall(id=i, name=name, input=given) for i, name, given in calls))


STOP = says(("z", "stop", {"text": "x"}))


async def converse(*replies, max_turns=20):
    port = FakePort(Journal().begin())
    await port.record("agent.started", "daemon", AgentStarted(agent="worker:E1", role="worker", task="t", context="begin here"))
    client = Replies(*replies)
    role = Role(name="worker", system="s", tools=TOOLS, max_turns=max_turns)
    conversation = await Conversation.resume(port, client, role, agent="worker:E1")
    return port, client, conversation


def results(port):
    return [r.data for r in port.journal.records if r.kind == "agent.result"]


async def test_messages_alternate_and_carry_the_answers():
    port, client, conversation = await converse(says(("a", "ask", {"text": "hi", "times": 2})), STOP)
    finished = await conversation.run()
    assert (finished.outcome, finished.detail) == ("done", "stop")
    first, last = client.requests
    assert [m.role for m in first.messages] == ["user"]
    assert first.messages[0].text == "begin here"
    assert [m.role for m in last.messages] == ["user", "assistant", "user"]
    assert last.messages[2].answers[0].content == {"echo": "hihi", "cause": "worker:E1/a"}
    assert port.state.agents["worker:E1"].state == "done"


async def test_what_is_rebuilt_is_what_was_sent():
    port, client, conversation = await converse(says(("a", "ask", {"text": "hi"}), ("b", "nope", {})), says(text="hm"), STOP)
    await conversation.run()
    for request in client.requests:
        upto = next(r.seq for r in port.journal.records if r.kind == "agent.reply" and r.data["turn"] == request.turn)
        assert History.of("worker:E1", port.journal.records[: upto - 1]).messages() == request.messages


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("a", "nope", {}), "there is no tool `nope`"),
        (("a", "ask", {}), "the input does not fit `ask`: Object missing required field `text`"),
        (("a", "ask", {"text": 3}), "the input does not fit `ask`: Expected `str`, got `int` - at `$.text`"),
        (("a", "ask", {"text": "x", "more": 1}), "the input does not fit `ask`: Object contains unknown field `more`"),
        (("a", "ask", {"text": "no"}), "not that"),
    ],
)
async def test_a_wrong_call_is_answered_and_the_agent_goes_on(call, error):
    port, _, conversation = await converse(says(call), STOP)
    await conversation.run()
    first = results(port)[0]
    assert (first["ok"], first["content"]["error"]) == (False, error)
    assert port.state.agents["worker:E1"].state == "done"


async def test_call_ids_that_come_again_get_their_own_cause():
    port, _, conversation = await converse(
        says(("a", "ask", {"text": "1"}), ("a", "ask", {"text": "2"})), says(("a", "ask", {"text": "3"}), ("", "ask", {"text": "4"})), STOP
    )
    await conversation.run()
    assert [r["call"] for r in results(port)] == ["a", "a~0.1", "a~1.0", "call~1.1", "z"]
    assert [r["content"]["echo"] for r in results(port)] == ["1", "2", "3", "4", "x"]


async def test_only_sixteen_calls_of_a_reply_are_taken():
    port, _, conversation = await converse(says(*((f"c{i}", "ask", {"text": "x"}) for i in range(40))), STOP)
    await conversation.run()
    assert len(results(port)) == 17


async def test_silence_is_answered_and_ends_in_failure():
    _, client, conversation = await converse(says(text="a"), says(text="b"), says(text="c"))
    with pytest.raises(AgentGaveUp, match="3 times in a row"):
        await conversation.run()
    assert client.requests[1].messages[-1].text == NO_CALL
    assert len(client.requests) == 3


async def test_replies_are_limited():
    replies = [says((f"c{i}", "ask", {"text": "x"})) for i in range(5)]
    _, client, conversation = await converse(*replies, max_turns=4)
    with pytest.raises(AgentGaveUp, match="all of its 4 replies"):
        await conversation.run()
    assert len(client.requests) == 4


async def test_a_huge_reply_and_a_huge_answer_are_cut():
    port, _, conversation = await converse(says(("a", "ask", {"text": "y", "times": 3_000_000}), text="x" * 5_000_000), STOP)
    await conversation.run()
    reply = next(r for r in port.journal.records if r.kind == "agent.reply")
    assert len(reply.data["text"]) == 1 << 20
    assert "characters left out" in reply.data["text"]
    assert len(results(port)[0]["content"]["echo"]) == 8_000


def test_nudges_stand_in_the_orchestrators_messages_only():
    journal = Journal().begin()
    journal.append("agent.started", "daemon", AgentStarted(agent="orchestrator", role="orchestrator", task="t", context="lead"))
    journal.append("agent.started", "daemon", AgentStarted(agent="idea:1", role="idea", task="t", context="think"))
    journal.append("nudge.queued", "operator", NudgeQueued(nudge="n1", text="look at long"))
    record = journal.append("nudge.delivered", "orchestrator", NudgeQueued(nudge="n1", text=""))
    assert record.kind == "nudge.delivered"
    assert History.of("orchestrator", journal.records).messages()[0].text == "lead\n\nMessage from the operator (n1):\nlook at long"
    assert History.of("idea:1", journal.records).messages()[0].text == "think"


def test_a_conversation_with_open_calls_ends_with_the_assistant():
    journal = Journal().begin()
    journal.append("agent.started", "daemon", AgentStarted(agent="idea:1", role="idea", task="t", context="think"))
    journal.append("agent.reply", "idea:1", AgentReply(agent="idea:1", turn=0, text="x", calls=[ToolCall(id="a", name="ask")]))
    history = History.of("idea:1", journal.records)
    assert [call.id for call in history.pending] == ["a"]
    assert history.messages()[-1].role == "assistant"
    assert msgspec.to_builtins(history.messages()[-1].calls) == ({"id": "a", "name": "ask", "input": {}},)
