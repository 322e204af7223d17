"""Model clients: session files, conditions, templates, playing, replay, refusals."""

import asyncio
from dataclasses import replace

import pytest
from port import ZEROS, FakePort, Journal, demo_judge, essence

from agents.clients import Message, ModelRequest, ToolAnswer, open_client
from agents.clients.conditions import fill, parse_condition
from agents.clients.playing import reply_at
from agents.clients.replay import ReplayClient
from agents.clients.session import Verbatim, load_session
from agents.errors import BadSession, Diverged, SessionEnded, UnknownClient
from agents.orchestrator import run_search
from state.chain import seal

SCOPE = {"ab": {"decision": "faster", "gain": 3.14159, "n": 3, "cases": [{"rho": 0.5}], "none": None, "ok": True, "list": []}}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ab.gain}}x", "3.14x"),
        ("{{ab.gain|.1f}} and {{ ab.cases.0.rho | .2f }}", "3.1 and 0.50"),
        ("{{ab.decision}}", "faster"),
        ("{{ab.gain}}", 3.14159),
        ("{{ab.missing}}", None),
        ("{{ab.missing}}!", "n/a!"),
        ("{{ab.none|.1f}}", "n/a"),
        ("{{ab.n|.q}} ", "3 "),
        ("{{ab.decision|.2f}} ", "faster "),
        ("{{ab.ok}} ", "True "),
        ("{ {ab.gain}}", "{ {ab.gain}}"),
        (Verbatim("{{ab.gain}}"), "{{ab.gain}}"),
        ({"a": ["{{ab.n}}", 4]}, {"a": [3, 4]}),
    ],
)
def test_templates(text, filled):
    assert fill(text, SCOPE) == filled


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"value": "ab.decision", "is": "faster"}, True),
        ({"value": "ab.decision", "in": ["slower", "unresolved"]}, False),
        ({"value": "ab.gain", "above": 3}, True),
        ({"value": "ab.gain", "below": 3}, False),
        ({"value": "ab.decision", "above": 3}, False),
        ({"value": "ab.missing", "above": 3}, False),
        ({"value": "ab.missing", "present": False}, True),
        ({"value": "ab.none", "present": True}, False),
        ({"value": "ab.list", "empty": True}, True),
        ({"value": "ab.missing", "empty": True}, False),
        ({"all": [{"value": "ab.n", "is": 3}, {"value": "ab.n", "above": 5}]}, False),
        ({"any": [{"value": "ab.n", "is": 3}, {"value": "ab.n", "above": 5}]}, True),
        ({"not": {"value": "ab.n", "is": 3}}, False),
    ],
)
def test_conditions(condition, holds):
    assert parse_condition(condition).holds(SCOPE) is holds


@pytest.mark.parametrize(
    "bad", [None, [], {"value": "x"}, {"is": 3}, {"value": "x", "is": 1, "above": 2}, {"all": {}}, {"value": "x", "like": 1}]
)
def test_a_condition_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match=r"condition|holds a list"):
        parse_condition(bad)


def load(tmp_path, text):
    path = tmp_path / "s.yml"
    path.write_text(text)
    return load_session(path)


LOOP = """
version: 1
agents:
  a:
    - say: start
      calls: {go: {tool: t, input: {n: 1}}}
    - until: {value: w.done, is: true}
      at_most: 3
      do:
        - say: again
          calls: {w: {tool: wait, input: {seen: "{{go.id}}"}}}
    - when: {value: w.done, is: true}
      then: [{say: "it was {{w.by}}"}]
      else: [{say: gave up}]
"""


def test_a_loop_gives_each_call_its_own_id_and_ends_on_its_answer(tmp_path):
    steps = load(tmp_path, LOOP).agents["a"]
    answers = {"go": {"id": "x7"}, "w": {"done": False}, "w#2": {"done": True, "by": "me"}}
    replies = [reply_at(steps, turn=n, answers=answers) for n in range(5)]
    assert [c.id for r in replies[:3] for c in r.calls] == ["go", "w", "w#2"]
    assert replies[1].calls[0].input == {"seen": "x7"}
    assert replies[3].text == "it was me"
    assert replies[4] is None


def test_a_loop_gives_up(tmp_path):
    steps = load(tmp_path, LOOP).agents["a"]
    assert reply_at(steps, turn=4, answers={}).text == "gave up"


def test_a_condition_sees_only_what_was_answered_before(tmp_path):
    steps = load(tmp_path, LOOP).agents["a"]
    late = {"w#3": {"done": True, "by": "late"}}
    assert reply_at(steps, turn=1, answers=late).text == "again"
    assert reply_at(steps, turn=4, answers=late).text == "it was late"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty or not a mapping"),
        ("[1, 2]", "is empty or not a mapping"),
        ("version: 2\nagents: {}", "version 2; this program reads version 1"),
        ("version: 1", "agents: must map agent ids to steps"),
        ("a: [", "is not YAML in UTF-8"),
        ("version: 1\nagents: {a: {}}", "agents.a: must be a list of steps"),
        ("version: 1\nagents: {a: [{do: 1}]}", r"agents.a\[0\]: a step has `say`"),
        ("version: 1\nagents: {a: [{say: x, tool: y}]}", "unknown key `tool`"),
        ("version: 1\nagents: {a: [{calls: {c: {input: {}}}}]}", r"agents.a\[0\].c: a call has `tool` and `input`"),
        ("version: 1\nagents: {a: [{calls: {c: {tool: t, input: {s: {file: gone.py}}}}}]}", "cannot read gone.py"),
        ("version: 1\nagents: {a: [{until: {value: x, is: 1}, at_most: 0}]}", "`at_most` must be a whole number"),
        ("version: 1\nagents: {a: [{when: {value: x}, then: []}]}", "a condition has `value`"),
    ],
)
def test_a_bad_session_names_file_and_step(tmp_path, text, why):
    with pytest.raises(BadSession, match=why) as caught:
        load(tmp_path, text)
    assert caught.value.code == 2
    assert "s.yml" in caught.value.message


def test_a_session_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadSession, match="there is no session `nope`") as caught:
        open_client({"agents": {"session": "nope"}})
    assert "demo" in caught.value.hint
    with pytest.raises(BadSession, match="cannot be read"):
        open_client({"agents": {"session": str(tmp_path / "gone.yml")}})


@pytest.mark.parametrize("name", ["anthropic", "command", "manual", "gpt"])
def test_a_client_that_does_not_exist_is_refused_with_those_that_do(name):
    with pytest.raises(UnknownClient, match="scripted, replay") as caught:
        open_client({"agents": {"model": name}})
    assert caught.value.code == 3


async def test_a_scripted_agent_without_replies_says_so(tmp_path):
    client = open_client({"agents": {"model": "scripted"}})
    with pytest.raises(SessionEnded, match="has no replies for worker:E99"):
        await client.reply(ModelRequest(role="worker", agent="worker:E99", turn=0, system="", messages=()))


async def demo_journal(tmp_path):
    port = FakePort(Journal().begin(), judge=demo_judge)
    client = open_client({})
    await asyncio.wait_for(run_search(port, lambda role: client, settings={}), 20)
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(chained((r.kind, r.data) for r in port.journal.records))
    return port, path


def chained(records):
    """The records as a journal's bytes."""
    lines, prev = [], ZEROS
    for number, (kind, data) in enumerate(records, start=1):
        line, prev = seal(seq=number, ts="2026-01-01T00:00:00Z", run="r", kind=kind, actor="daemon", data=data, prev=prev)
        lines.append(line)
    return b"".join(lines)


async def test_a_replay_takes_the_same_way(tmp_path):
    recorded, path = await demo_journal(tmp_path)
    port = FakePort(Journal().begin(), judge=demo_judge)
    client = open_client({"agents": {"model": "replay", "replay": str(path)}})
    await asyncio.wait_for(run_search(port, lambda role: client, settings={}), 20)
    assert essence(port.state) == essence(recorded.state)
    assert port.state.agents["orchestrator"].model == "replay:scripted:demo"


async def test_a_replay_that_goes_another_way_says_where(tmp_path):
    _, path = await demo_journal(tmp_path)
    client = open_client({"agents": {"model": "replay", "session": str(path)}})
    answer = ToolAnswer(call="ab", name="request_ab", ok=True, content={"decision": "unresolved", "status": "ok", "experiment": "E1"})
    request = ModelRequest(
        role="orchestrator", agent="orchestrator", turn=6, system="", messages=(Message(role="user", answers=(answer,)),)
    )
    with pytest.raises(Diverged, match="`request_ab` \\(ab\\) answered decision 'unresolved' where the journal has 'faster'") as caught:
        await client.reply(request)
    assert "reply 6 of orchestrator" in caught.value.message
    with pytest.raises(SessionEnded, match="no reply 99 of orchestrator"):
        await client.reply(ModelRequest(role="orchestrator", agent="orchestrator", turn=99, system="", messages=()))


async def test_a_replayed_worker_that_diverges_fails_and_the_run_says_so(tmp_path):
    _, path = await demo_journal(tmp_path)
    port = FakePort(Journal().begin(), judge=lambda job: demo_judge(job) if "chunked" not in job.candidate.text else _right(job))
    client = open_client({"agents": {"model": "replay", "replay": str(path)}})
    with pytest.raises(Diverged):
        await asyncio.wait_for(run_search(port, lambda role: client, settings={}), 20)
    assert port.state.agents["worker:E2"].state == "failed"
    assert "diverged at reply 2 of worker:E2" in port.state.experiments["E2"].conclusion


def _right(job):
    return demo_judge(replace(job, candidate=replace(job.candidate, text="gated_mean_fused")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "holds no model replies"),
        (b"hello\n", "line 1: not a record"),
        (chained([("agent.reply", {"agent": 3})]), "a reply in it cannot be read"),
        (chained([("note", {"text": "one"}), ("note", {"text": "two"})]).replace(b"one", b"two"), "line 1: hash mismatch"),
    ],
)
def test_a_journal_that_cannot_be_replayed_is_named(tmp_path, text, why):
    path = tmp_path / "j.jsonl"
    path.write_bytes(text)
    with pytest.raises(BadSession, match=why):
        ReplayClient.open(path)


def test_a_journal_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadSession, match="No such file") as caught:
        ReplayClient.open(tmp_path / "none.jsonl")
    assert caught.value.hint


async def test_a_torn_last_line_is_left_out(tmp_path):
    _, path = await demo_journal(tmp_path)
    with path.open("a") as file:
        file.write('{"kind": "agent.re')
    reply = await ReplayClient.open(path).reply(ModelRequest(role="idea", agent="idea:3", turn=0, system="", messages=()))
    assert reply.calls[0].name == "propose"


def test_a_session_written_for_one_problem_is_refused_on_another():
    assert open_client({"run": {"problem": "builtin:scan"}, "agents": {"session": "demo"}}).session.problem == "builtin:scan"
    with pytest.raises(BadSession, match=r"`demo` is written for builtin:scan, not for builtin:mlp"):
        open_client({"run": {"problem": "builtin:mlp"}, "agents": {"session": "demo"}})
