"""Episodes: parsing, the five replies, lifecycle events, kills."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from port import FakePort, Journal, judged

from agents.clients.interface import ModelReply
from agents.episode import EpisodeTask, LifecycleEvent, run_episode
from agents.episode.parsing import parse_reply
from agents.errors import ClientFailed
from evaluator.records import Status


def block(code, action="CHECK"):
    return f"Some words.\n```python\n{code}\n```\nACTION: {action}\n"


RIGHT = block("# speedup 2.0")
FASTER = block("# speedup 3.0")
WRONG = block("# incorrect")
BROKEN = block("# compile_error")


@pytest.mark.parametrize(
    ("text", "code", "action", "problem"),
    [
        (block("x = 1"), "x = 1\n", "CHECK", None),
        (block("x = 1", "SUBMIT"), "x = 1\n", "SUBMIT", None),
        ("**ACTION: SUBMIT**\n```py\nx\n```", "x\n", "SUBMIT", None),
        ("```python\nx\n```\n  ACTION: CHECK.", "x\n", "CHECK", None),
        ("```text\nnot code\n```\n" + block("x"), "x\n", "CHECK", None),
        ("````python\na = '''\n```\n'''\n````\nACTION: CHECK", "a = '''\n```\n'''\n", "CHECK", None),
        ("```python\nx\n```\r\nACTION: CHECK\r\n", "x\n", "CHECK", None),
        ("\x1b[1m```python\x1b[0m\nx\n```\n\x1b[31mACTION: CHECK\x1b[0m", "x\n", "CHECK", None),
        ("", None, None, "there is no python block"),
        ("ACTION: CHECK", None, "CHECK", "there is no python block"),
        ("```\nx\n```\nACTION: CHECK", None, "CHECK", "there is no python block"),
        (block("a") + block("b"), None, "CHECK", "there are 2 python blocks"),
        ("```python\nx\n```", "x\n", None, "there is no line `ACTION: CHECK`"),
        ("```python\nx\n```\nplease ACTION: CHECK this", "x\n", None, "there is no line"),
        ("```python\nACTION: CHECK\n```", "ACTION: CHECK\n", None, "there is no line"),
        (block("x") + "ACTION: SUBMIT", "x\n", None, "there are both"),
        (block("x") + "ACTION: CHECK", "x\n", "CHECK", None),
        ("```python\nx\nACTION: CHECK", None, None, "a code block is not closed"),
        (block("x") + "```python\n", None, "CHECK", "a code block is not closed"),
        ("x" * 5_000_000, None, None, "the reply has 1048576 characters or more"),
        (block("y" * 5_000_000), None, None, "the reply has 1048576 characters or more"),
    ],
)
def test_replies_are_read(text, code, action, problem):
    parsed = parse_reply(text)
    assert (parsed.code, parsed.action) == (code, action)
    assert (parsed.problems == ()) is (problem is None)
    if problem:
        assert any(problem in found for found in parsed.problems)


@given(st.text(alphabet=st.sampled_from("`\n \x1bpython[mACTION:CHECKSUBMIT*"), max_size=400))
def test_any_text_gives_an_answer(text):
    parsed = parse_reply(text)
    assert parsed.action in (None, "CHECK", "SUBMIT")
    assert parsed.problems or (parsed.code is not None and parsed.action is not None)


class Says:
    """A model that gives the replies of a list, by turn."""

    def __init__(self, *replies):
        self.replies = replies
        self.requests = []

    async def reply(self, request):
        self.requests.append(request)
        reply = self.replies[request.turn]
        if isinstance(reply, Exception):
            raise reply
        return ModelReply(text=reply, model="m")


async def episode(*replies, lifecycle=(), port=None, client=None, probe=False, **clients):
    port = port or FakePort(Journal().begin())
    client = client or Says(*replies)
    task = EpisodeTask(episode="ep1", model="m", lifecycle=tuple(lifecycle), probe=probe)
    ended = await asyncio.wait_for(run_episode(port, lambda name: clients.get(name, client), task), 20)
    return ended, port, client


def jobs(port):
    return [(r.data["kind"], r.data["request"]) for r in port.journal.records if r.kind == "job.started"]


async def test_check_then_submit():
    ended, port, client = await episode(RIGHT, block("# speedup 3.0", "SUBMIT"))
    assert (ended.success, ended.score) == (True, 3.0)
    report = ended.trajectory["official_report"]
    assert report["status"] == "ok"
    assert report["speedup"] == 3.0
    assert report["speedup_lo95"] == pytest.approx(2.97)
    assert report["ref_ms"] == pytest.approx(1.0)
    assert report["cand_ms"] == pytest.approx(1 / 3)
    assert report["n_trials"] == 20
    assert jobs(port) == [("check", "kernel|builtin:scan|ep1|1"), ("evaluate", "kernel|builtin:scan|ep1|2")]
    feedback = client.requests[1].messages[-1].text
    assert feedback == "CHECK passed: it builds and its outputs are right on fresh inputs.\n4 of 5 replies left."


async def test_feedback_names_the_failure_and_no_figure():
    _, _, client = await episode(BROKEN, WRONG, block("# speedup 2.0", "SUBMIT"))
    assert client.requests[1].messages[-1].text.startswith("CHECK failed (compile_error): found compile_error\nOutput:\nerror: xxx")
    assert len(client.requests[1].messages[-1].text) < 7_000
    assert (
        client.requests[2].messages[-1].text
        == "CHECK failed (incorrect): found incorrect\nOutput:\n" + (client.requests[2].messages[-1].text.partition("Output:\n")[2])
    )
    assert not any("speedup" in m.text for r in client.requests for m in r.messages if m.role == "user")


async def test_the_fifth_reply_is_submitted_whatever_its_action():
    ended, _, _ = await episode(RIGHT, WRONG, WRONG, WRONG, "```python\n# speedup 4.0\n```\nno action at all")
    assert ended.score == 4.0
    assert [a["passed_check"] for a in ended.trajectory["attempts"]] == [True, False, False, False, False]


@pytest.mark.parametrize("last", ["nothing", block("a") + block("b"), "x" * 5_000_000])
async def test_else_the_last_version_that_passed_is(last):
    ended, port, _ = await episode(RIGHT, FASTER, WRONG, BROKEN, last)
    assert ended.score == 3.0
    assert [kind for kind, _ in jobs(port)] == ["check", "check", "check", "check", "evaluate"]


async def test_none_passed_fails_without_a_protected_evaluation():
    ended, port, _ = await episode(WRONG, BROKEN, "what?", WRONG, "give up")
    assert (ended.success, ended.score) == (False, 0.0)
    assert ended.trajectory["official_report"]["status"] == "no_submission"
    assert "evaluate" not in {kind for kind, _ in jobs(port)}
    assert ended.boundary.survived


async def test_a_reply_without_form_costs_a_reply_and_says_why():
    _, port, client = await episode("hello", block("# speedup 2.0", "SUBMIT"))
    assert client.requests[1].messages[-1].text == (
        "Your reply could not be used: there is no python block (```python on a line of its own); "
        "there is no line `ACTION: CHECK` or `ACTION: SUBMIT`.\n4 of 5 replies left."
    )
    assert len(jobs(port)) == 1


async def test_a_wrong_submission_scores_nothing():
    ended, _, _ = await episode(block("# incorrect", "SUBMIT"))
    assert (ended.success, ended.score, ended.trajectory["official_report"]["status"]) == (False, 0.0, "incorrect")
    assert ended.trajectory["official_report"]["speedup"] is None


async def test_the_score_is_capped():
    ended, _, _ = await episode(block("# speedup 40", "SUBMIT"))
    assert (ended.score, ended.trajectory["official_report"]["speedup"]) == (10.0, 40.0)


async def test_a_probe_carries_only_the_official_report():
    ended, _, _ = await episode(RIGHT, block("# speedup 2", "SUBMIT"), probe=True)
    assert set(ended.trajectory) == {"official_report"}


@pytest.mark.parametrize(("step", "reply"), [(0, 1), (1, 2), (3, 4), (4, 1), (7, 4)])
def test_an_event_falls_into_one_of_the_four_gaps(step, reply):
    assert LifecycleEvent(type="crash", at_step=step).before_reply == reply


async def test_compaction_replaces_the_conversation_with_task_and_summary():
    _, _, client = await episode(
        RIGHT, WRONG, WRONG, block("# speedup 2", "SUBMIT"), lifecycle=[LifecycleEvent(type="compaction", at_step=1)]
    )
    before, after, later = client.requests[1].messages, client.requests[2].messages, client.requests[3].messages
    assert [m.role for m in before] == ["user", "assistant", "user"]
    assert [m.role for m in after] == ["user"]
    assert after[0].text.startswith(before[0].text)
    assert "# Summary of your earlier replies" in after[0].text
    assert "# speedup 2.0" in after[0].text
    assert [m.role for m in later] == ["user", "assistant", "user"]


async def test_a_model_swap_takes_one_reply():
    other = Says(None, None, WRONG)
    ended, _, client = await episode(
        RIGHT,
        WRONG,
        None,
        block("# speedup 2", "SUBMIT"),
        lifecycle=[LifecycleEvent(type="model_swap", at_step=1, to="small")],
        small=other,
    )
    assert [r.turn for r in other.requests] == [2]
    assert [r.turn for r in client.requests] == [0, 1, 3]
    assert ended.boundary.applied_detail == [{"type": "model_swap", "before_reply": 2, "to": "small"}]


@pytest.mark.parametrize("step", range(4))
async def test_a_crash_changes_nothing_and_evaluates_nothing_twice(step):
    replies = (RIGHT, WRONG, "hm", BROKEN, "nothing")
    plain, _, _ = await episode(*replies)
    crashed, port, client = await episode(*replies, lifecycle=[LifecycleEvent(type="crash", at_step=step)])
    assert crashed.trajectory == plain.trajectory
    assert crashed.boundary.applied == ["crash"]
    assert len(client.requests) == 5
    assert len(jobs(port)) == len(set(jobs(port))) == 4


async def test_an_event_after_an_early_submit_is_listed_but_not_applied():
    events = [LifecycleEvent(type="compaction", at_step=0), LifecycleEvent(type="crash", at_step=2)]
    ended, _, _ = await episode(RIGHT, block("# speedup 2", "SUBMIT"), lifecycle=events)
    assert [e.type for e in ended.boundary.events] == ["compaction", "crash"]
    assert ended.boundary.applied == ["compaction"]


async def test_an_error_of_the_models_service_is_not_survived():
    ended, port, _ = await episode(RIGHT, ClientFailed("out of credit"))
    assert (ended.success, ended.boundary.survived) == (False, False)
    assert ended.trajectory["official_report"]["message"] == "out of credit"
    assert port.state.agents["episode:ep1"].state == "failed"


async def test_an_infrastructure_error_is_not_charged_to_the_model():
    def failing(job):
        return replace(judged(job), status=Status.EVALUATOR_ERROR, message="no device", evaluation=None)

    ended, port, _ = await episode(RIGHT, port=FakePort(Journal().begin(), judge=failing))
    assert not ended.boundary.survived
    assert "failed on this check, also when it was tried again: no device" in ended.trajectory["official_report"]["message"]
    assert len(port.state.finished_requests) == 1, "the queue tries again, nobody else does"


@pytest.mark.parametrize("events", [[], [("compaction", 1)], [("crash", 0), ("compaction", 2)], [("crash", 3), ("crash", 1)]])
async def test_a_kill_after_any_record_gives_the_same_outcome(events):
    lifecycle = [LifecycleEvent(type=kind, at_step=step) for kind, step in events]
    replies = (RIGHT, "hm", BROKEN, FASTER, "nothing")
    expected, whole, asked = await episode(*replies, lifecycle=lifecycle)
    for at in range(2, len(whole.journal.records)):
        journal = Journal().begin()
        with pytest.raises(asyncio.CancelledError):
            await episode(*replies, lifecycle=lifecycle, port=FakePort(journal, stop_after=at))
        resumed, port, client = await episode(*replies, lifecycle=lifecycle, port=FakePort(journal))
        assert msgspec.to_builtins(resumed) == msgspec.to_builtins(expected)
        assert len({r.data["request"] for r in journal.records if r.kind == "job.finished"}) == len(port.state.finished_requests) == 4
        for request in client.requests:
            assert request.messages == asked.requests[request.turn].messages


async def test_a_finished_episode_gives_its_outcome_again_without_asking_anybody():
    expected, port, _ = await episode(RIGHT, block("# speedup 2", "SUBMIT"))
    count = len(port.journal.records)
    again, port, client = await episode(port=FakePort(port.journal))
    assert again == expected
    assert client.requests == []
    assert len(port.journal.records) == count


async def test_memory_gives_context_once_and_gets_the_trajectory():
    class Notes:
        asked = 0
        kept: list = []

        async def context(self, problem):
            self.asked += 1
            return f"You have seen {problem} before."

        async def remember(self, problem, trajectory):
            self.kept.append(trajectory)

    notes, client = Notes(), Says(block("# speedup 2", "SUBMIT"))
    task = EpisodeTask(episode="ep1", model="m", memory=notes, probe=True)
    await run_episode(FakePort(Journal().begin()), lambda _: client, task)
    assert client.requests[0].messages[0].text.startswith("You have seen builtin:scan before.")
    assert notes.asked == 1
    assert [set(t) for t in notes.kept] == [{"official_report"}]
