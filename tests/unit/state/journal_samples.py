"""Plausible records for tests of state: a tiny run by hand, and random ones by hypothesis."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import strategies as st

from state.events import Belief, Record
from state.prediction import prediction_sha256

SHA = {name: hashlib.sha256(name.encode()).hexdigest() for name in "abcdef"}
CASES = ["short", "long"]


def records_of(entries: list[tuple[str, str, dict[str, Any]]], *, run: str = "r1") -> list[Record]:
    """Records without a chain, for the reducer."""
    return [
        Record(v=1, seq=i, ts=f"2026-10-08T00:00:{i % 60:02d}Z", run=run, kind=kind, actor=actor, data=data, prev="", hash=f"{i:064x}")
        for i, (kind, actor, data) in enumerate(entries, start=1)
    ]


def created() -> dict[str, Any]:
    return {
        "title": "softmax",
        "problem": "builtin:softmax",
        "problem_sha256": "p",
        "problem_title": "Softmax",
        "cases": CASES,
        "device": "cpu",
        "model": "scripted",
        "profile": "open",
        "gate": "reduced gate (first light)",
        "config": {"n": 2},
    }


def belief(case: str = "long", low: float = 1.2, high: float = 2.0) -> dict[str, Any]:
    return {"case": case, "low": low, "high": high, "basis": "roofline", "level": 0.8}


def opened(experiment: str = "e1", **more: Any) -> dict[str, Any]:
    beliefs = [Belief(case="long", low=1.2, high=2.0, basis="roofline")]
    return {
        "experiment": experiment,
        "idea": "i1",
        "title": f"title of {experiment}",
        "base": None,
        "champion": None,
        "prediction": [belief()],
        "prediction_sha256": prediction_sha256(beliefs),
        "claims": ["C1"],
        "parts": [],
        "cause": None,
        **more,
    }


def started(request: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"request": request, "kind": kind, **more}


def result(request: str, kind: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"job": request, "kind": kind, "status": status, "device_s": 0.5, "fingerprint": {"sha256": "f"}, **more}


def interval(low: float, high: float) -> dict[str, float]:
    return {"low": low, "high": high, "level": 0.95}


def evaluation(speedup: float = 1.5, cand_us: float = 100.0) -> dict[str, Any]:
    audit = {"event_us": 1.0, "wall_us": 1.0, "overhead_us": 0.0, "slack_us": 0.0, "agrees": True}
    timings = [
        {
            "case": case,
            "ref_us": cand_us * speedup,
            "cand_us": cand_us,
            "speedup": speedup,
            "speedup_ci": interval(speedup * 0.9, speedup * 1.1),
            "speedup_mean": speedup,
            "speedup_bound": speedup,
            "trials": 10,
            "blocks": 5,
            "voided": 0,
            "audit": audit,
        }
        for case in CASES
    ]
    return {
        "correct": True,
        "fast1": True,
        "fast1_raw": True,
        "speedup": speedup,
        "speedup_ci": interval(speedup * 0.9, speedup * 1.1),
        "speedup_bound": speedup,
        "score": speedup,
        "timings": timings,
        "flags": ["over 10x"],
        "trials": {"long": {"ref": [[1.0] * 50]}},
    }


def verdict(rho: float = 0.8, decision: str = "faster") -> dict[str, Any]:
    cases = [
        {
            "case": case,
            "rho": rho,
            "rho_ci": interval(rho * 0.98, rho * 1.02),
            "rho_wall": rho,
            "rho_wall_ci": interval(rho * 0.95, rho * 1.05),
            "slot_bias": bias,
            "floor": 0.01,
            "pairs": 20,
        }
        for case, bias in zip(CASES, (1.0, 1.21), strict=True)
    ]
    return {
        "decision": decision,
        "reason": "clear",
        "rho": rho,
        "rho_ci": interval(rho * 0.98, rho * 1.02),
        "rho_wall": rho,
        "rho_wall_ci": interval(rho * 0.95, rho * 1.05),
        "floor": 0.01,
        "cases": cases,
        "champion_sha256": None,
        "candidate_sha256": SHA["a"],
        "outputs_verified": 40,
    }


def small_run() -> list[tuple[str, str, dict[str, Any]]]:
    """A whole short run: baseline, floor, one experiment up to its promotion."""
    e, a = "e1", SHA["a"]
    text = "## Claims\n\n- [C1] exp dominates (confidence 0.80; assert speedup@long > 1; evidence e1)\n"
    return [
        ("run.created", "daemon", created()),
        ("run.state", "daemon", {"state": "running"}),
        ("job.started", "daemon", started("q|b|0", "baseline")),
        (
            "job.finished",
            "evaluator",
            {"request": "q|b|0", "result": result("q|b|0", "baseline", baseline={"eager_us": 150.0, "compiled_us": 120.0, "cases": []})},
        ),
        ("job.started", "daemon", started("q|f|0", "floor")),
        (
            "job.finished",
            "evaluator",
            {
                "request": "q|f|0",
                "result": result(
                    "q|f|0",
                    "floor",
                    floor={
                        "floor": 0.02,
                        "cases": [
                            {
                                "case": "long",
                                "floor": 0.03,
                                "rho": 1.0,
                                "rho_ci": interval(0.99, 1.01),
                                "rho_wall": 1.0,
                                "rho_wall_ci": interval(0.99, 1.01),
                                "slot_bias": 1.0,
                                "pairs": 20,
                                "spread": 0.1,
                            }
                        ],
                        "source_sha256": None,
                    },
                ),
            },
        ),
        ("agent.started", "daemon", {"agent": "orchestrator", "role": "orchestrator", "task": "search"}),
        (
            "agent.reply",
            "orchestrator",
            {
                "agent": "orchestrator",
                "turn": 0,
                "text": "Let us\nbegin.",
                "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25},
            },
        ),
        ("agent.result", "orchestrator", {"agent": "orchestrator", "call": "t1", "name": "dispatch", "ok": True, "content": {}}),
        ("idea.proposed", "idea:1", {"idea": "i1", "title": "fuse", "category": "engineering", "rationale": "r", "beliefs": [belief()]}),
        ("experiment.opened", "orchestrator", opened(cause="orchestrator/t2")),
        ("agent.started", "daemon", {"agent": "worker:1", "role": "worker", "task": "fuse it", "experiment": e}),
        ("candidate.submitted", "worker:1", {"experiment": e, "sha256": a, "bytes": 10}),
        ("job.started", "worker:1", started("q|e1|1", "evaluate", experiment=e, candidate=a)),
        (
            "job.finished",
            "evaluator",
            {"request": "q|e1|1", "result": result("q|e1|1", "evaluate", source_sha256=a, evaluation=evaluation())},
        ),
        ("job.started", "worker:1", started("q|e1|2", "ab", experiment=e, candidate=a)),
        ("job.finished", "evaluator", {"request": "q|e1|2", "result": result("q|e1|2", "ab", verdict=verdict())}),
        ("experiment.reported", "worker:1", {"experiment": e, "conclusion": "it is faster", "report": "long", "final": a}),
        (
            "experiment.reconciled",
            "orchestrator",
            {
                "experiment": e,
                "cases": [
                    {
                        "case": "long",
                        "predicted_low": 1.2,
                        "predicted_high": 2.0,
                        "measured": 1.25,
                        "measured_low": 1.22,
                        "measured_high": 1.28,
                        "log_error": -0.2,
                        "covered": True,
                        "interval_score": 0.5,
                        "surprise": 0.8,
                    }
                ],
                "surprise": 0.8,
                "source": "ab",
                "explanation": "as expected",
                "correctness": "correct",
                "performance": "faster",
                "hypothesis": "confirmed",
            },
        ),
        ("world_model.edited", "orchestrator", {"sha256": hashlib.sha256(text.encode()).hexdigest(), "lines": 3, "text": text}),
        (
            "gate.decided",
            "daemon",
            {
                "experiment": e,
                "sha256": a,
                "gate": "reduced gate (first light)",
                "promoted": True,
                "checks": [{"name": "verdict", "passed": True, "detail": "d"}],
                "not_checked": ["memory checker"],
                "reason": "all passed",
            },
        ),
        (
            "promotion",
            "daemon",
            {
                "number": 1,
                "experiment": e,
                "sha256": a,
                "previous": None,
                "rho": 0.8,
                "speedup": 1.5,
                "champion_us": 100.0,
                "gate": "reduced gate (first light)",
                "not_checked": ["memory checker"],
            },
        ),
        ("nudge.queued", "operator", {"nudge": "n1", "text": "look at the long case"}),
        ("nudge.delivered", "daemon", {"nudge": "n1"}),
        ("note", "daemon", {"text": "disk is filling up", "level": "warning"}),
        ("run.state", "daemon", {"state": "finished"}),
    ]


_experiment = st.sampled_from(["e1", "e2", "e3", "ghost"])
_request = st.sampled_from([f"q|{i}" for i in range(6)])
_agent = st.sampled_from(["orchestrator", "worker:1", "worker:2", "idea:1"])
_sha = st.sampled_from(list(SHA.values()))
_text = st.text(max_size=20)
_cause = st.none() | st.sampled_from(["orchestrator/t1", "worker:1/t2"])
_tokens = st.none() | st.integers(0, 1000)
_status = st.sampled_from(["ok", "incorrect", "compile_error", "tampered", "evaluator_error"])
_job = st.sampled_from(["check", "evaluate", "ab", "robustness", "floor", "baseline", "qualify"])


def _entry(kind: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, str, dict[str, Any]]]:
    return st.tuples(st.just(kind), _agent, st.fixed_dictionaries(fields))


@st.composite
def _finished(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    request, kind, status = draw(_request), draw(_job), draw(_status)
    bodies = {
        "evaluate": {"evaluation": evaluation(draw(st.floats(0.5, 5)))},
        "ab": {"verdict": verdict(draw(st.floats(0.2, 2)))},
        "baseline": {"baseline": {"eager_us": draw(st.floats(1, 1e6)), "compiled_us": None, "cases": []}},
        "floor": {"floor": {"floor": 0.01, "cases": [], "source_sha256": None}},
        "robustness": {"robustness": {"passed": draw(st.booleans()), "parts": []}},
        "qualify": {"qualification": {"qualified": True, "quick": True, "controls": []}},
    }
    more = bodies.get(kind, {}) if status == "ok" else {}
    return ("job.finished", "evaluator", {"request": request, "result": result(request, kind, status, **more)})


entries = st.lists(
    st.one_of(
        st.just(("run.created", "daemon", created())),
        _entry("run.resumed", pid=st.integers(1, 9), voided=st.lists(_request, max_size=2)),
        _entry("run.control", action=st.sampled_from(["pause", "resume", "stop"])),
        _entry("run.state", state=st.sampled_from(["running", "draining", "paused", "stopped", "finished"])),
        _entry("job.started", request=_request, kind=_job, experiment=st.none() | _experiment, candidate=_sha, cause=_cause),
        _finished(),
        _entry("job.voided", request=_request, why=_text),
        _entry("agent.started", agent=_agent, role=st.sampled_from(["worker", "idea"]), task=_text, experiment=st.none() | _experiment),
        _entry(
            "agent.reply",
            agent=_agent,
            turn=st.integers(0, 5),
            text=_text,
            usage=st.fixed_dictionaries({"input_tokens": _tokens, "output_tokens": _tokens}),
        ),
        _entry("agent.result", agent=_agent, call=_text, name=_text, ok=st.booleans(), content=st.just({})),
        _entry("agent.finished", agent=_agent, outcome=st.sampled_from(["done", "failed"])),
        _entry(
            "idea.proposed",
            idea=st.sampled_from(["i1", "i2"]),
            title=_text,
            category=_text,
            rationale=_text,
            beliefs=st.just([belief()]),
            cause=_cause,
        ),
        st.builds(
            lambda e, cause, parts: ("experiment.opened", "orchestrator", opened(e, cause=cause, parts=parts)),
            st.sampled_from(["e1", "e2", "e3"]),
            _cause,
            st.just([]) | st.just(["e1"]),
        ),
        _entry("candidate.submitted", experiment=_experiment, sha256=_sha, bytes=st.integers(0, 9)),
        _entry("experiment.reported", experiment=_experiment, conclusion=_text, report=_text, final=st.none() | _sha),
        _entry(
            "experiment.banked",
            experiment=_experiment,
            sha256=_sha,
            rho=st.just(0.99),
            rho_low=st.just(0.98),
            rho_high=st.just(1),
            floor=st.just(0.02),
        ),
        _entry(
            "gate.decided",
            experiment=_experiment,
            sha256=_sha,
            gate=_text,
            promoted=st.booleans(),
            checks=st.just([]),
            not_checked=st.just(["x"]),
            reason=_text,
        ),
        _entry(
            "promotion",
            number=st.integers(1, 3),
            experiment=_experiment,
            sha256=_sha,
            previous=st.none() | _sha,
            rho=st.just(0.9),
            speedup=st.floats(1, 9),
            champion_us=st.floats(1, 9),
            gate=_text,
            not_checked=st.just([]),
        ),
        _entry("world_model.edited", sha256=_sha, lines=st.integers(0, 9), text=st.just("## Claims\n- [C1] x (confidence 0.5)\n") | _text),
        _entry("nudge.queued", nudge=st.sampled_from(["n1", "n2"]), text=_text),
        _entry("nudge.delivered", nudge=st.sampled_from(["n1", "n2", "n3"])),
        _entry("nudge.acknowledged", nudge=st.sampled_from(["n1", "n2"])),
        _entry("note", text=_text, level=st.sampled_from(["info", "warning", "alert"])),
        _entry("future.kind", anything=_text, cause=_cause),
        st.tuples(st.sampled_from(["job.started", "promotion", "agent.reply"]), _agent, st.just({"broken": True})),
    ),
    max_size=40,
)
"""Entries as a run could write them, with some that refer to nothing and some that cannot be read."""
