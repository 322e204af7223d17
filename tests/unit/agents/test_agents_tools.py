"""What tools refuse, and what they leave behind."""

import hashlib
from dataclasses import replace

import pytest
from port import FakePort, Journal

from agents.roles import role_of
from agents.settings import AgentSettings, agent_settings
from agents.tools.desk import Desk
from agents.tools.tool import execute
from evaluator.records import JobKind, Status
from state.events import AgentFinished, AgentStarted, IdeaProposed, ToolCall

PREDICTION = [{"case": case, "low": 1.0, "high": 1.2, "basis": "counted"} for case in ("short", "long")]


class Idle:
    def __init__(self):
        self.started = []

    def start(self, agent):
        self.started.append(agent)


class Office:
    """A run with one idea, and hands for each role."""

    def __init__(self):
        self.port = FakePort(Journal().begin())
        self.staff = Idle()
        self.calls = 0

    async def __aenter__(self):
        idea = IdeaProposed(idea="I1.1", title="i", category="engineering", rationale="r", beliefs=[], cause="x")
        await self.port.record("agent.started", "daemon", AgentStarted(agent="orchestrator", role="orchestrator", task="t"))
        await self.port.record("idea.proposed", "idea:1", idea)
        return self

    async def __aexit__(self, *_):
        return None

    async def call(self, name, given, *, role="orchestrator", experiment=None, call=None, **settings):
        self.calls += 1
        agent = role if role == "orchestrator" else f"{role}:{experiment or 1}"
        desk = Desk(port=self.port, agent=agent, settings=AgentSettings(**settings), staff=self.staff, experiment=experiment)
        call = ToolCall(id=call or f"c{self.calls}", name=name, input=given)
        return await execute(role_of(role, desk).tools, call, cause=f"{agent}/{call.id}")

    async def experiment(self, source, *, name="E1", claims=()):
        launched = await self.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION, "claims": list(claims)})
        assert launched.content["experiment"] == name
        for tool, given in (
            ("submit_candidate", {"source": source}),
            ("evaluate", {}),
            ("report", {"conclusion": "c", "report": "r", "final": "latest"}),
        ):
            assert (await self.call(tool, given, role="worker", experiment=name)).ok
        await self.port.record("agent.finished", f"worker:{name}", AgentFinished(agent=f"worker:{name}", outcome="done"))


async def refused(office, name, given, **options):
    answer = await office.call(name, given, **options)
    assert not answer.ok
    return answer.content["error"]


async def test_a_worker_needs_a_prediction_for_every_case():
    async with Office() as office:
        asked = {"idea": "I1.1", "title": "t"}
        assert "missing required field `prediction`" in await refused(office, "launch_worker", asked)
        assert "it has no belief about any case" in await refused(office, "launch_worker", {**asked, "prediction": []})
        assert "long: not predicted" in await refused(office, "launch_worker", {**asked, "prediction": PREDICTION[:1]})
        wide = [{**PREDICTION[0], "low": 2.0}, PREDICTION[1]]
        assert "needs 0 < low < high, got [2, 1.2]" in await refused(office, "launch_worker", {**asked, "prediction": wide})
        baseless = [{**PREDICTION[0], "basis": " "}, PREDICTION[1]]
        assert "the basis is empty" in await refused(office, "launch_worker", {**asked, "prediction": baseless})
        odd = [{**PREDICTION[0], "hope": 1}, PREDICTION[1]]
        assert "unknown field `hope`" in await refused(office, "launch_worker", {**asked, "prediction": odd})
        assert office.port.state.experiments == {}
        assert office.staff.started == []


async def test_a_launch_repeated_after_a_kill_is_the_same_experiment():
    async with Office() as office:
        asked = {"idea": "I1.1", "title": "t", "prediction": PREDICTION}
        first = await office.call("launch_worker", asked, call="x")
        again = await office.call("launch_worker", asked, call="x")
        other = await office.call("launch_worker", asked, call="y")
        assert first.content == again.content
        assert (first.content["experiment"], other.content["experiment"]) == ("E1", "E2")
        assert office.staff.started == ["worker:E1", "worker:E1", "worker:E2"]
        assert len(first.content["prediction_sha256"]) == 64


async def test_a_launch_names_what_it_does_not_know():
    async with Office() as office:
        asked = {"title": "t", "prediction": PREDICTION}
        assert await refused(office, "launch_worker", {**asked, "idea": "I9.9"}) == "there is no idea `I9.9`"
        assert await refused(office, "launch_worker", {**asked, "idea": "I1.1", "base": "nonsense"}) == "`nonsense` names no candidate"
        assert await refused(office, "launch_worker", {**asked, "idea": "I1.1", "parts": ["E7"]}) == "there is no experiment `E7`"


async def test_the_ladder_is_climbed_in_order():
    async with Office() as office:
        launched = await office.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION})
        assert launched.ok
        assert await refused(office, "request_ab", {"experiment": "E1"}) == "E1 has no candidate"
        await office.call("submit_candidate", {"source": "# speedup 2"}, role="worker", experiment="E1")
        assert await refused(office, "request_ab", {"experiment": "E1"}) == "E1's candidate has no protected evaluation"
        assert (await office.call("evaluate", {"experiment": "E1"})).content["speedup"] == 2.0
        assert await refused(office, "bank", {"experiment": "E1"}) == "E1's candidate has no A/B verdict"
        assert (await office.call("request_ab", {"experiment": "E1"})).content["decision"] == "faster"
        assert await refused(office, "bank", {"experiment": "E1"}) == "E1's A/B is faster, not below the floor"


async def test_an_incorrect_candidate_goes_no_further():
    async with Office() as office:
        await office.experiment("# incorrect")
        error = await refused(office, "request_ab", {"experiment": "E1"})
        assert error == "E1's evaluation ended as incorrect: found incorrect"
        assert await refused(office, "robustness", {"experiment": "E1"}) == error


async def test_below_the_floor_is_banked_once():
    async with Office() as office:
        await office.experiment("# speedup 1.005")
        await office.call("request_ab", {"experiment": "E1"})
        banked = await office.call("bank", {"experiment": "E1"}, call="b")
        again = await office.call("bank", {"experiment": "E1"}, call="b")
        assert banked.content == again.content == {**banked.content, "retention": "banked", "bank": ["E1"]}
        assert banked.content["rho"] == pytest.approx(1 / 1.005)
        assert sum(r.kind == "experiment.banked" for r in office.port.journal.records) == 1


async def test_a_surprise_closes_only_with_a_change_of_the_world_model():
    async with Office() as office:
        claim = {"action": "add", "claim": "C1", "sentence": "s", "confidence": 0.7}
        await office.call("edit_world_model", {"why": "w", "changes": [claim]})
        await office.experiment("# speedup 3", claims=["C1"])
        await office.call("request_ab", {"experiment": "E1"})
        asked = {"experiment": "E1", "explanation": "why"}
        small = {"action": "revise", "claim": "C1", "why": "w", "confidence": 0.65}
        assert "the world model must change before E1 closes" in await refused(office, "reconcile", asked)
        assert "the world model must change" in await refused(office, "reconcile", {**asked, "changes": [small]})
        assert office.port.state.experiments["E1"].stage == "reported"
        assert "[C1] s (confidence 0.70)" in office.port.state.world_model_text
        done = await office.call("reconcile", {**asked, "changes": [{**small, "confidence": 0.4}]})
        assert done.ok
        assert done.content["surprise"] == pytest.approx(11.05, abs=0.1)
        assert done.content["source"] == "ab"
        assert office.port.state.experiments["E1"].stage == "reconciled"
        assert "[C1] s (confidence 0.40)" in office.port.state.world_model_text


async def test_without_surprise_an_explanation_is_enough_and_only_once():
    async with Office() as office:
        await office.experiment("# speedup 1.1")
        await office.call("request_ab", {"experiment": "E1"})
        assert await refused(office, "reconcile", {"experiment": "E1", "explanation": " "}) == "a reconciliation needs an explanation"
        done = await office.call("reconcile", {"experiment": "E1", "explanation": "as counted"}, call="r")
        assert (done.content["hypothesis"], done.content["performance"]) == ("confirmed", "faster")
        again = await office.call("reconcile", {"experiment": "E1", "explanation": "as counted"}, call="r")
        assert again.content == done.content
        assert await refused(office, "reconcile", {"experiment": "E1", "explanation": "more"}) == "E1 is already reconciled"


async def test_the_evaluation_counts_when_there_is_no_ab_against_the_predicted_champion():
    async with Office() as office:
        await office.experiment("# speedup 1.1")
        read = await office.call("read_experiment", {"experiment": "E1"})
        assert read.content["source"] == "evaluation"
        assert read.content["reconciliation"][0]["measured"] == pytest.approx(1.1)


async def test_a_refuted_assertion_is_noted_on_its_claim_by_rule():
    async with Office() as office:
        claim = {"action": "add", "claim": "C1", "sentence": "s", "confidence": 0.6, "assertions": ["speedup@short in [1.15, 1.3]"]}
        await office.call("edit_world_model", {"why": "w", "changes": [claim]})
        await office.experiment("# speedup 1.1", claims=["C1"])
        await office.call("request_ab", {"experiment": "E1"})
        done = await office.call("reconcile", {"experiment": "E1", "explanation": "e"})
        assert [c["claim"] for c in done.content["by_rule"]] == ["C1"]
        assert "against E1" in office.port.state.world_model_text


async def test_a_search_ends_only_when_everything_is_closed():
    async with Office() as office:
        await office.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION})
        assert await refused(office, "finish", {"summary": "s"}) == "still at work: worker:E1"
        assert await refused(office, "reconcile", {"experiment": "E1", "explanation": "e"}) == "worker:E1 is still at work on E1"
        await office.port.record("agent.finished", "worker:E1", AgentFinished(agent="worker:E1", outcome="failed"))
        assert await refused(office, "finish", {"summary": "s"}) == "not reconciled: E1"
        assert (await office.call("reconcile", {"experiment": "E1", "explanation": "no candidate"})).ok
        assert (await office.call("finish", {"summary": "s"})).ok


async def test_the_gate_decides_and_says_what_is_missing():
    async with Office() as office:
        await office.experiment("# speedup 1.1")
        answer = await office.call("promote", {"experiment": "E1"})
        assert (answer.ok, answer.content["promoted"]) == (True, False)
        assert answer.content["reason"] == "missing: a/b, robustness, reconciliation"


async def test_a_worker_reaches_its_own_candidates_only():
    async with Office() as office:
        await office.experiment("# speedup 1.1")
        await office.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION})
        other = office.port.state.experiments["E1"].candidates[0]
        assert await refused(office, "check", {}, role="worker", experiment="E2") == "this experiment has no candidate yet"
        await office.call("submit_candidate", {"source": "# speedup 9"}, role="worker", experiment="E2")
        error = await refused(office, "check", {"candidate": other}, role="worker", experiment="E2")
        assert error == f"`{other}` is none of this experiment's candidates"


async def test_a_check_tells_no_figure_and_a_log_is_cleaned():
    async with Office() as office:
        await office.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION})
        await office.call("submit_candidate", {"source": "# speedup 2"}, role="worker", experiment="E1")
        right = (await office.call("check", {}, role="worker", experiment="E1")).content
        assert "speedup" not in str(right)
        assert [c["correct"] for c in right["cases"]] == [True, True]
        await office.call("submit_candidate", {"source": "# compile_error"}, role="worker", experiment="E1")
        wrong = (await office.call("check", {}, role="worker", experiment="E1")).content
        assert wrong["status"] == "compile_error"
        assert wrong["log"].startswith("error: xxx")
        assert len(wrong["log"]) == 8_000


async def test_a_refusal_carries_what_a_naive_evaluator_claimed():
    async with Office() as office:
        await office.experiment("# refused")
        read = (await office.call("read_experiment", {"experiment": "E1"})).content
        assert read["evaluation"]["naive_speedup"] == 400.0
        assert read["correctness"] == "tampered"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (" \n", "the source is empty"),
        ("x" * 1_048_577, "the source is 1048577 bytes; at most 1048576 are accepted"),
        ("\ud800", "not valid"),
    ],
)
async def test_a_text_that_cannot_be_a_candidate_is_refused(source, why):
    async with Office() as office:
        await office.call("launch_worker", {"idea": "I1.1", "title": "t", "prediction": PREDICTION})
        assert why in await refused(office, "submit_candidate", {"source": source}, role="worker", experiment="E1")
        assert office.port.state.experiments["E1"].candidates == []


async def test_a_candidate_is_stored_under_its_hash():
    async with Office() as office:
        await office.experiment("# speedup 2\u00e9")
        sha256 = hashlib.sha256("# speedup 2\u00e9".encode()).hexdigest()
        assert office.port.candidate(sha256) == "# speedup 2\u00e9"
        assert office.port.state.experiments["E1"].final == sha256


async def test_workers_evaluate_only_where_the_run_allows_it():
    async with Office() as office:
        error = await refused(office, "evaluate", {}, role="worker", experiment="E1", workers_evaluate=False)
        assert error == "there is no tool `evaluate`"


async def test_an_infrastructure_error_is_said_and_never_held_against_the_candidate():
    async with Office() as office:
        await office.experiment("# speedup 2")
        judge = office.port.judge
        office.port.judge = lambda job: replace(judge(job), status=Status.EVALUATOR_ERROR, message="no device", verdict=None)
        words = await refused(office, "request_ab", {"experiment": "E1"})
        assert words == "the evaluator failed on this ab, also when it was tried again: no device"
        office.port.judge = judge
        assert (await office.call("request_ab", {"experiment": "E1"}, call="later")).content["decision"] == "faster"
        finished = [r.data["request"] for r in office.port.journal.records if r.kind == "job.finished"]
        assert len(finished) == len(set(finished))


async def test_an_unknown_record_or_experiment_is_named():
    async with Office() as office:
        assert await refused(office, "read_record", {"seq": 99}) == "there is no record 99"
        assert (await office.call("read_record", {"seq": 1})).content["kind"] == "run.created"
        assert await refused(office, "read_experiment", {"experiment": "E9"}) == "there is no experiment `E9`"


def test_job_options_come_from_the_configuration():
    settings = agent_settings({"evaluation": {"ab": {"pairs": 20}, "evaluate": {"seeds": 3}}, "agents": {"n": 2}})
    assert settings.job_options(JobKind.AB) == {"pairs": 20}
    assert settings.job_options(JobKind.EVALUATE) == {"naive": True, "seeds": 3}
    assert (settings.n, settings.worker_turns) == (2, 60)
