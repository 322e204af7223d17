"""A whole search against the evaluator's double: the demo session, and kills at every record."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
import yaml
from port import FakePort, Journal, demo_judge, essence

from agents.clients import open_client
from agents.clients.scripted import ScriptedClient
from agents.clients.session import load_session
from agents.errors import SessionEnded
from agents.orchestrator import run_search
from agents.tools.launch import LaunchWorker
from agents.tools.tool import input_schema
from evaluator.records import Status

SMALL = {
    "version": 1,
    "agents": {
        "orchestrator": [
            {
                "say": "ideas",
                "calls": {
                    "claim": {
                        "tool": "edit_world_model",
                        "input": {
                            "why": "first",
                            "changes": [{"action": "add", "claim": "C1", "sentence": "exp is cheap", "confidence": 0.7}],
                        },
                    },
                    "idea": {"tool": "dispatch_idea", "input": {"category": "engineering", "focus": "exp"}},
                },
            },
            {
                "until": {"value": "w.pending", "empty": True},
                "do": [{"say": "wait", "calls": {"w": {"tool": "wait", "input": {"until": ["idea:1"]}}}}],
            },
            {
                "say": "two workers",
                "calls": {
                    label: {
                        "tool": "launch_worker",
                        "input": {
                            "idea": "I1.1",
                            "title": label,
                            "claims": ["C1"],
                            "prediction": [{"case": c, "low": 1.0, "high": 1.2, "basis": "C1"} for c in ("short", "long")],
                        },
                    }
                    for label in ("a", "b")
                },
            },
            {
                "until": {"value": "v.pending", "empty": True},
                "do": [{"say": "wait", "calls": {"v": {"tool": "wait", "input": {"until": ["E1", "E2"]}}}}],
            },
            {
                "say": "measure",
                "calls": {
                    "rob": {"tool": "robustness", "input": {"experiment": "E1"}},
                    "ab": {"tool": "request_ab", "input": {"experiment": "E1"}},
                },
            },
            {
                "say": "close",
                "calls": {
                    "r1": {
                        "tool": "reconcile",
                        "input": {
                            "experiment": "E1",
                            "explanation": "exp was dear",
                            "changes": [
                                {"action": "revise", "claim": "C1", "confidence": 0.3, "why": "{{ab.gain|.1f}}x", "against": ["E1"]},
                                {"action": "add", "sentence": "exp is dear", "confidence": 0.8, "evidence": ["E1"]},
                            ],
                        },
                    },
                    "r2": {"tool": "reconcile", "input": {"experiment": "E2", "explanation": "wrong"}},
                },
            },
            {
                "when": {"value": "ab.decision", "is": "faster"},
                "then": [{"say": "promote", "calls": {"p": {"tool": "promote", "input": {"experiment": "E1"}}}}],
            },
            {"say": "end", "calls": {"f": {"tool": "finish", "input": {"summary": "done"}}}},
        ],
        "idea:1": [
            {
                "say": "one",
                "calls": {
                    "i": {
                        "tool": "propose",
                        "input": {
                            "title": "vector exp",
                            "category": "engineering",
                            "rationale": "r",
                            "beliefs": [{"case": c, "low": 1.0, "high": 2.0, "basis": "b"} for c in ("short", "long")],
                        },
                    },
                    "d": {"tool": "finish", "input": {"summary": "one idea"}},
                },
            },
        ],
        "worker:E1": [
            {
                "say": "try",
                "calls": {
                    "s": {"tool": "submit_candidate", "input": {"source": "# speedup 3.0"}},
                    "c": {"tool": "check", "input": {}},
                    "e": {"tool": "evaluate", "input": {}},
                },
            },
            {
                "say": "{{e.speedup}}",
                "calls": {
                    "r": {"tool": "report", "input": {"conclusion": "{{e.speedup|.1f}}x", "report": "fast", "final": "latest"}},
                },
            },
        ],
        "worker:E2": [
            {
                "say": "try",
                "calls": {
                    "s": {"tool": "submit_candidate", "input": {"source": "# incorrect"}},
                    "e": {"tool": "evaluate", "input": {}},
                },
            },
            {"say": "no", "calls": {"r": {"tool": "report", "input": {"conclusion": "{{e.status}}", "report": "carry lost"}}}},
        ],
    },
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yml"
    path.write_text(yaml.safe_dump(SMALL, sort_keys=False))
    return ScriptedClient(load_session(path))


async def search(port, client):
    await asyncio.wait_for(run_search(port, lambda role: client, settings={}), 20)


async def killed_at(journal, client, at, **options):
    """Run until record `at` is durable; whether the search was still going on."""
    try:
        await search(FakePort(journal, stop_after=at, **options), client)
    except asyncio.CancelledError:
        return True
    return False


async def test_the_small_search_promotes_what_was_measured(small):
    port = FakePort(Journal().begin())
    await search(port, small)
    state = port.state
    assert [p.experiment for p in state.promotions] == ["E1"]
    assert state.speedup == 3.0
    assert state.experiments["E1"].conclusion == "3.0x"
    assert state.experiments["E1"].surprise > 2
    assert state.experiments["E1"].hypothesis == "refuted"
    assert (state.experiments["E2"].correctness, state.experiments["E2"].retention) == ("incorrect", "none")
    assert "[C1] exp is cheap (confidence 0.3" in state.world_model_text
    assert "[C2] exp is dear" in state.world_model_text
    assert {a.state for a in state.agents.values()} == {"done"}


async def test_a_kill_after_any_record_changes_nothing(small):
    whole = FakePort(Journal().begin())
    await search(whole, small)
    expected = essence(whole.state)
    for at in range(2, len(whole.journal.records)):
        journal = Journal().begin()
        assert await killed_at(journal, small, at)
        assert len(journal.records) == at
        resumed = FakePort(journal)
        await search(resumed, small)
        assert essence(resumed.state) == expected, f"killed after record {at}"
        assert_nothing_twice(journal)


async def test_kills_one_after_another_still_come_to_an_end(small):
    whole = FakePort(Journal().begin())
    await search(whole, small)
    journal = Journal().begin()
    # Seven more records each time: two cut-off jobs are voided and started again first.
    while await killed_at(journal, small, len(journal.records) + 7):
        pass
    assert essence(FakePort(journal).state) == essence(whole.state)
    assert_nothing_twice(journal)


async def test_a_finished_search_returns_at_once(small):
    port = FakePort(Journal().begin())
    await search(port, small)
    count = len(port.journal.records)
    await search(FakePort(port.journal), small)
    assert len(port.journal.records) == count


async def test_the_demo_shows_every_kind_of_outcome():
    port = FakePort(Journal().begin(), judge=demo_judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    state = port.state
    outcomes = {e.id: (e.correctness, e.performance, e.retention) for e in state.experiments.values()}
    assert outcomes == {
        "E1": ("correct", "faster", "promoted"),
        "E2": ("incorrect", "untested", "none"),
        "E3": ("compile_error", "untested", "none"),
        "E4": ("correct", "faster", "promoted"),
        "E5": ("tampered", "untested", "none"),
        "E6": ("correct", "unresolved", "banked"),
    }
    assert {e.stage for e in state.experiments.values()} == {"reconciled"}
    assert state.experiments["E4"].surprise > 2
    assert {c.claim for c in state.experiments["E4"].claim_changes} == {"C2", "C4"}
    assert len({i.actor for i in state.ideas.values()}) == 3
    assert state.alerts == []


async def test_the_demo_calls_no_tool_wrongly_and_leaves_no_figure_open():
    port = FakePort(Journal().begin(), judge=demo_judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    results = [r.data for r in port.journal.records if r.kind == "agent.result"]
    assert [(r["name"], r["content"]) for r in results if not r["ok"]] == []
    said = [str(r.data) for r in port.journal.records if r.kind == "agent.reply"]
    assert [text for text in said if "n/a" in text or "{{" in text] == []


@pytest.mark.parametrize("unresolved", ["gated_mean_fused", "gated_mean_vectorised"])
async def test_the_demo_ends_cleanly_where_a_promotion_is_not_resolved(unresolved):
    def judge(job):
        if job.kind == "ab" and unresolved in job.candidate.text:
            return demo_judge(replace(job, champion=job.candidate))
        return demo_judge(job)

    port = FakePort(Journal().begin(), judge=judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    assert port.state.agents["orchestrator"].state == "done"
    assert {e.stage for e in port.state.experiments.values()} == {"reconciled"}
    name = "E1" if unresolved == "gated_mean_fused" else "E4"
    assert port.state.experiments[name].retention == "banked"


async def test_the_demo_ends_cleanly_where_nothing_builds():
    def judge(job):
        return demo_judge(replace(job, candidate=replace(job.candidate, text="gated_mean_intrinsics")))

    port = FakePort(Journal().begin(), judge=judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    assert {e.correctness for e in port.state.experiments.values()} == {"compile_error"}
    assert port.state.agents["orchestrator"].state == "done"


async def test_the_demo_gets_over_a_failure_of_the_evaluator_on_every_job():
    failed = Counter()

    def judge(job):
        key = job.kind, job.candidate.sha256
        failed[key] += 1
        result = demo_judge(job)
        if failed[key] > 1:
            return result
        return replace(result, status=Status.EVALUATOR_ERROR, message="not quiet", evaluation=None, verdict=None, robustness=None)

    port = FakePort(Journal().begin(), judge=judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    assert port.state.agents["orchestrator"].state == "done"
    assert failed, "the failures were met"


async def test_the_demo_ends_cleanly_where_no_ab_can_be_measured():
    def judge(job):
        result = demo_judge(job)
        return replace(result, status=Status.EVALUATOR_ERROR, verdict=None) if job.kind == "ab" else result

    port = FakePort(Journal().begin(), judge=judge)
    await search(port, open_client({"agents": {"model": "scripted"}}))
    assert port.state.agents["orchestrator"].state == "done"
    assert {e.stage for e in port.state.experiments.values()} == {"reconciled"}
    assert port.state.promotions == []


async def test_kills_all_through_the_demo_change_nothing():
    client = open_client({"agents": {"model": "scripted"}})
    whole = FakePort(Journal().begin(), judge=demo_judge)
    await search(whole, client)
    expected = essence(whole.state)
    for at in range(4, len(whole.journal.records), 5):
        journal = Journal().begin()
        assert await killed_at(journal, client, at, judge=demo_judge)
        resumed = FakePort(journal, judge=demo_judge)
        await search(resumed, client)
        assert essence(resumed.state) == expected, f"killed after record {at}"
        assert_nothing_twice(journal)


async def test_a_worker_without_replies_fails_alone_and_its_experiment_is_reported(small):
    small.session.agents["worker:E2"] = small.session.agents["worker:E2"][:1]
    port = FakePort(Journal().begin())
    await search(port, small)
    assert port.state.agents["worker:E2"].state == "failed"
    assert port.state.experiments["E2"].conclusion.startswith("the worker failed: session `small` ends before reply 1")
    assert [p.experiment for p in port.state.promotions] == ["E1"]


async def test_an_orchestrator_without_replies_ends_the_run_with_its_error(small):
    small.session.agents["orchestrator"] = small.session.agents["orchestrator"][:1]
    with pytest.raises(SessionEnded, match="ends before reply 1 of orchestrator"):
        await search(FakePort(Journal().begin()), small)


async def test_a_nudge_is_delivered_in_the_next_request_and_acknowledged_by_its_reply(small):
    seen = []

    class Watching:
        async def reply(self, request):
            if request.agent == "orchestrator":
                seen.append(request)
            return await small.reply(request)

    port = FakePort(Journal().begin())
    await port.nudge("mind the \x1b[31mlong case")
    await search(port, Watching())
    assert "mind the" in seen[0].messages[0].text
    assert "(n1)" in seen[0].messages[0].text
    assert seen[-1].messages[0].text == seen[0].messages[0].text
    assert [n.state for n in port.state.nudges] == ["acknowledged"]
    kinds = [r.kind for r in port.journal.records]
    assert kinds.index("nudge.delivered") < kinds.index("agent.reply") < kinds.index("nudge.acknowledged")


async def test_a_nudge_survives_a_kill_at_any_record(small):
    for at in range(3, 9):
        journal = Journal().begin()
        await FakePort(journal).nudge("hello")
        assert await killed_at(journal, small, at)
        resumed = FakePort(journal)
        await search(resumed, small)
        assert [n.state for n in resumed.state.nudges] == ["acknowledged"]
        assert Counter(r.kind for r in journal.records)["nudge.delivered"] == 1


async def test_more_agents_than_allowed_are_refused(small):
    port = FakePort(Journal().begin())
    await asyncio.wait_for(run_search(port, lambda role: small, settings={"agents": {"n": 2}}), 20)
    assert [p.experiment for p in port.state.promotions] == ["E1"]
    full = FakePort(Journal().begin())
    await asyncio.wait_for(run_search(full, lambda role: small, settings={"agents": {"n": 1}}), 20)
    refused = [r.data["content"]["error"] for r in full.journal.records if r.kind == "agent.result" and not r.data["ok"]]
    assert refused == ["1 of 1 agents are at work: worker:E1", "there is no experiment `E2`"]
    waits = [r.data["content"] for r in full.journal.records if r.kind == "agent.result" and r.data["name"] == "wait"]
    assert waits[-1]["unknown"] == ["E2"]


def test_every_tool_schema_refuses_unknown_fields():
    schema = input_schema(LaunchWorker)
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["BeliefInput"]["additionalProperties"] is False
    assert set(schema["required"]) == {"idea", "title", "prediction"}


def assert_nothing_twice(journal):
    keys = Counter()
    for record in journal.records:
        data = record.data
        if record.kind == "agent.reply":
            keys["reply", data["agent"], data["turn"]] += 1
        elif record.kind == "agent.result":
            keys["result", data["agent"], data["call"]] += 1
        elif record.kind == "job.finished":
            keys["job", data["request"]] += 1
        elif record.kind in ("agent.finished", "agent.started"):
            keys[record.kind, data["agent"]] += 1
        elif record.kind != "job.started" and data.get("cause"):
            keys[record.kind, data["cause"]] += 1
    assert [key for key, count in keys.items() if count > 1] == []
