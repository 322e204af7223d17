from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_samples import SHA, entries, evaluation, opened, records_of, result, small_run, started, verdict

from state.events import KINDS
from state.folding.alerts import ALERTS_KEPT
from state.model import RunState
from state.reducer import HANDLERS, apply, fold

Entry = tuple[str, str, dict[str, Any]]


def folded(*more: Entry, base: list[Entry] | None = None) -> RunState:
    return fold(records_of([*(small_run()[:2] if base is None else base), *more]))


def test_every_kind_has_a_handler() -> None:
    assert set(HANDLERS) == set(KINDS)


def test_a_whole_short_run() -> None:
    state = fold(records_of(small_run()))
    assert (state.run, state.title, state.cases, state.gate) == ("r1", "softmax", ["short", "long"], "reduced gate (first light)")
    assert (state.status, state.seq, state.records) == ("finished", 26, 26)
    assert (state.started_ts, state.last_ts) == ("2026-10-08T00:00:01Z", "2026-10-08T00:00:26Z")
    assert (state.baseline_us, state.compiled_us, state.floor, state.floor_by_case) == (150.0, 120.0, 0.02, {"long": 0.03})
    assert (state.champion, state.champion_us, state.speedup) == (SHA["a"], 100.0, 1.5)
    assert [(p.number, p.seq, p.previous) for p in state.promotions] == [(1, 22, None)]
    assert state.device_s == 2.0
    assert state.in_flight == []
    assert state.finished_requests == {"q|b|0": 4, "q|f|0": 6, "q|e1|1": 15, "q|e1|2": 17}
    assert (state.tokens_in, state.tokens_out, state.cost_usd) == (10, 5, 0.25)
    assert state.effects == {"experiment.opened orchestrator/t2": 11}
    assert state.results == {"orchestrator/t1": 9}
    assert state.world_model_history == [20]
    assert [n.state for n in state.nudges] == ["delivered"]
    assert [(a.level, a.text) for a in state.alerts] == [("warning", "disk is filling up")]
    assert state.agents["orchestrator"].last_words == "Let us begin."
    assert state.ideas["i1"].experiments == ["e1"]
    assert state.fingerprint == "f"


def test_the_experiment_of_a_short_run() -> None:
    e = fold(records_of(small_run())).experiments["e1"]
    assert (e.stage, e.rung, e.retention, e.worker) == ("reconciled", 3, "promoted", "worker:1")
    assert (e.correctness, e.performance, e.hypothesis) == ("correct", "faster", "confirmed")
    assert e.candidates == [SHA["a"]]
    assert e.claims == ["C1"]
    assert (e.opened_seq, e.last_seq) == (11, 22)
    assert e.evaluation is not None
    assert (e.evaluation.speedup, e.evaluation.speedup_low, e.evaluation.cand_us) == (1.5, pytest.approx(1.35), pytest.approx(100.0))
    assert e.evaluation.ref_us == pytest.approx(150.0)
    assert e.verdict is not None
    assert (e.verdict.decision, e.verdict.rho, e.verdict.floor) == ("faster", 0.8, 0.01)
    assert e.verdict.slot_bias == pytest.approx(1.1)
    assert (e.gate_reason, e.not_checked, [c.name for c in e.gate_checks]) == ("all passed", ["memory checker"], ["verdict"])


def test_raw_trials_never_reach_the_state() -> None:
    assert b"trials" not in msgspec.json.encode(fold(records_of(small_run())))


@pytest.mark.parametrize(
    ("jobs", "correctness"),
    [
        ([("check", "ok")], "untested"),
        ([("check", "compile_error")], "compile_error"),
        ([("check", "compile_error"), ("check", "ok")], "untested"),
        ([("check", "ok"), ("evaluate", "tampered")], "tampered"),
        ([("evaluate", "ok"), ("check", "incorrect")], "correct"),
        ([("evaluate", "ok"), ("evaluate", "evaluator_error")], "correct"),
        ([("evaluate", "evaluator_error")], "untested"),
    ],
)
def test_only_a_protected_evaluation_says_correct(jobs: list[tuple[str, str]], correctness: str) -> None:
    more: list[Entry] = [("experiment.opened", "orchestrator", opened())]
    for i, (kind, status) in enumerate(jobs):
        more.append(("job.started", "daemon", started(f"q|{i}", kind, experiment="e1")))
        body = {"evaluation": evaluation()} if (kind, status) == ("evaluate", "ok") else {}
        more.append(("job.finished", "evaluator", {"request": f"q|{i}", "result": result(f"q|{i}", kind, status, **body)}))
    assert folded(*more).experiments["e1"].correctness == correctness


def test_a_refused_cheat_keeps_what_a_naive_evaluator_would_have_said() -> None:
    body = {"evaluation": {**evaluation(), "naive": {"correct": True, "speedup": 28.8}}}
    state = folded(
        ("experiment.opened", "orchestrator", opened()),
        ("job.started", "daemon", started("q|1", "evaluate", experiment="e1", candidate=SHA["b"])),
        ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "evaluate", "tampered", message="m" * 5000, **body)}),
    )
    found = state.experiments["e1"].evaluation
    assert found is not None
    assert (found.status, found.claimed_speedup, found.claimed_correct, found.sha256) == ("tampered", 28.8, True, SHA["b"])
    assert len(found.message) == 1000


def test_unknown_tokens_stay_unknown() -> None:
    usage = [
        {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.1},
        {"input_tokens": 3},
        {"input_tokens": 4, "output_tokens": 5, "cost_usd": 1.0},
    ]
    replies: list[Entry] = [("agent.reply", "a", {"agent": "a", "turn": i, "text": "", "usage": u}) for i, u in enumerate(usage)]
    state = folded(("agent.started", "daemon", {"agent": "a", "role": "idea", "task": "t"}), *replies)
    assert (state.tokens_in, state.tokens_out, state.cost_usd) == (8, None, None)
    assert (state.agents["a"].input_tokens, state.agents["a"].output_tokens, state.agents["a"].turns) == (8, None, 3)


def test_a_control_is_requested_until_it_is_in_force() -> None:
    seen = []
    state = RunState()
    for record in records_of(
        [
            ("run.state", "daemon", {"state": "running"}),
            ("run.control", "operator", {"action": "pause"}),
            ("run.state", "daemon", {"state": "draining", "in_flight": ["q|1"]}),
            ("run.state", "daemon", {"state": "paused"}),
            ("run.control", "operator", {"action": "resume"}),
            ("run.state", "daemon", {"state": "running"}),
            ("run.control", "operator", {"action": "stop"}),
            ("run.state", "daemon", {"state": "stopping"}),
            ("run.state", "daemon", {"state": "stopped", "reason": "asked"}),
        ]
    ):
        apply(state, record)
        seen.append((state.status, state.requested))
    assert seen == [
        ("running", None),
        ("running", "pause"),
        ("draining", "pause"),
        ("paused", None),
        ("paused", "resume"),
        ("running", None),
        ("running", "stop"),
        ("stopping", "stop"),
        ("stopped", None),
    ]
    assert state.status_reason == "asked"


def test_a_cut_off_measurement_is_void_once_and_repeated_under_its_id() -> None:
    more: list[Entry] = [
        ("job.started", "daemon", started("q|1", "check")),
        ("run.resumed", "daemon", {"pid": 7, "voided": ["q|1"]}),
        ("job.voided", "daemon", {"request": "q|1", "why": "killed"}),
        ("job.started", "daemon", started("q|1", "check")),
    ]
    state = folded(*more)
    assert (state.voided, state.resumed) == (1, 1)
    assert [(f.request, f.seq) for f in state.in_flight] == [("q|1", 6)]
    state = folded(*more, ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "check")}))
    assert (state.in_flight, state.finished_requests, state.alerts) == ([], {"q|1": 7}, [])


def test_a_second_result_is_an_alert_and_changes_nothing() -> None:
    finished: Entry = ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "baseline", baseline={"eager_us": 5.0})})
    again: Entry = ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "baseline", baseline={"eager_us": 9.0})})
    state = folded(
        ("job.started", "daemon", started("q|1", "baseline")), finished, again, ("job.started", "daemon", started("q|1", "baseline"))
    )
    assert (state.baseline_us, state.device_s, state.in_flight) == (5.0, 0.5, [])
    assert [a.text for a in state.alerts] == [
        "request q|1 has a second result; ignored",
        "request q|1 was started again after its result; ignored",
    ]


def test_references_to_nothing_are_alerts() -> None:
    state = folded(
        ("experiment.reported", "worker:1", {"experiment": "e9", "conclusion": "c", "report": "r", "final": None}),
        ("agent.finished", "x", {"agent": "x", "outcome": "done"}),
        ("nudge.delivered", "daemon", {"nudge": "n9"}),
    )
    assert [a.text for a in state.alerts] == [
        "record 3 (experiment.reported) refers to unknown experiment 'e9'; ignored",
        "record 4 (agent.finished) refers to unknown agent 'x'; ignored",
        "record 5 (nudge.delivered) refers to unknown nudge 'n9'; ignored",
    ]
    assert state.experiments == {}


def test_unknown_kinds_are_counted_and_unreadable_data_is_an_alert() -> None:
    state = folded(("future.kind", "x", {"cause": "a/1"}), ("future.kind", "x", {}), ("promotion", "daemon", {"number": "one"}))
    assert state.unknown_kinds == {"future.kind": 2}
    assert state.effects == {"future.kind a/1": 3}
    assert state.promotions == []
    assert state.alerts[0].text.startswith("record 5 (promotion) cannot be read")


def test_a_newer_judge_may_use_words_and_fields_of_its_own() -> None:
    state = folded(
        ("experiment.opened", "orchestrator", opened()),
        ("job.finished", "evaluator", {"request": "q|1", "experiment": "e1", "result": result("q|1", "evaluate", "melted", new_field=[1])}),
    )
    assert state.experiments["e1"].correctness == "melted"


def test_banked_parts_leave_the_bank_when_their_stack_is_promoted() -> None:
    bank: list[Entry] = [
        (kind, "x", data)
        for name in ("e1", "e2", "e3")
        for kind, data in [
            ("experiment.opened", opened(name)),
            ("experiment.banked", {"experiment": name, "sha256": SHA["b"], "rho": 0.99, "rho_low": 0.98, "rho_high": 1.0, "floor": 0.02}),
        ]
    ]
    stack: list[Entry] = [
        ("experiment.opened", "x", opened("e4", parts=["e1", "e3"])),
        (
            "promotion",
            "daemon",
            {
                "number": 1,
                "experiment": "e4",
                "sha256": SHA["c"],
                "previous": None,
                "rho": 0.9,
                "speedup": 1.1,
                "champion_us": 9.0,
                "gate": "g",
                "not_checked": [],
            },
        ),
    ]
    assert folded(*bank).bank == ["e1", "e2", "e3"]
    state = folded(*bank, *stack)
    assert state.bank == ["e2"]
    assert {n: e.retention for n, e in state.experiments.items()} == {"e1": "banked", "e2": "banked", "e3": "banked", "e4": "promoted"}


def test_a_refusal_by_the_gate_is_kept_and_a_stray_promotion_alerts() -> None:
    no = {
        "experiment": "e1",
        "sha256": SHA["a"],
        "gate": "g",
        "promoted": False,
        "checks": [],
        "not_checked": [],
        "reason": "below the floor",
    }
    promoted = {
        "number": 3,
        "experiment": "e1",
        "sha256": SHA["a"],
        "previous": SHA["f"],
        "rho": 0.9,
        "speedup": 1.1,
        "champion_us": 9.0,
        "gate": "g",
        "not_checked": [],
    }
    opening: Entry = ("experiment.opened", "x", opened())
    state = folded(opening, ("gate.decided", "daemon", no))
    assert (state.experiments["e1"].retention, state.experiments["e1"].gate_reason, state.champion) == ("refused", "below the floor", None)
    assert folded(opening, ("promotion", "daemon", promoted)).alerts[-1].level == "alert"


@pytest.mark.parametrize(("quick", "words"), [(True, "quick: 1 of 2 controls"), (False, "1 of 2 controls")])
def test_qualification_in_words(quick: bool, words: str) -> None:
    controls = [
        {"control": c, "profile": "open", "gate": True, "expected": "ok", "got": "ok", "passed": p} for c, p in (("a", True), ("b", False))
    ]
    body = {"qualification": {"qualified": False, "quick": quick, "controls": controls}}
    state = folded(("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "qualify", "ok", **body)}))
    assert (state.qualified, state.qualification) == (False, words)


def test_an_unresolved_verdict_is_a_performance_word_of_its_own() -> None:
    state = folded(
        ("experiment.opened", "x", opened()),
        ("job.started", "daemon", started("q|1", "ab", experiment="e1")),
        ("job.finished", "evaluator", {"request": "q|1", "result": result("q|1", "ab", verdict=verdict(0.99, "unresolved"))}),
    )
    assert (state.experiments["e1"].performance, state.experiments["e1"].rung) == ("unresolved", 3)


def test_alerts_are_bounded_and_the_latest_stay() -> None:
    notes: list[Entry] = [("note", "daemon", {"text": str(i), "level": "alert"}) for i in range(ALERTS_KEPT + 50)]
    state = folded(*notes)
    assert len(state.alerts) == ALERTS_KEPT
    assert state.alerts[-1].text == str(ALERTS_KEPT + 49)


def test_a_record_already_folded_changes_nothing() -> None:
    records = records_of(small_run())
    state = fold(records)
    before = msgspec.json.encode(state)
    for record in records:
        apply(state, record)
    assert msgspec.json.encode(state) == before


@settings(max_examples=150, deadline=None)
@given(entries=entries, cut=st.integers(0, 40))
def test_incremental_equals_whole_also_through_json(entries: list[Entry], cut: int) -> None:
    records = records_of([*small_run()[:2], *entries])
    untouched = copy.deepcopy(records)
    whole = fold(records)
    state = fold(records[:cut])
    state = msgspec.json.decode(msgspec.json.encode(state), type=RunState)
    for record in records[cut:]:
        apply(state, record)
    assert state == whole
    assert records == untouched
    assert whole.records == len(records)
    assert len({f.request for f in whole.in_flight}) == len(whole.in_flight)
    assert not {f.request for f in whole.in_flight} & set(whole.finished_requests)
