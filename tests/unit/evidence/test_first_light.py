"""The measured artefacts of first light: every figure can be computed again from what lies beside it."""

from __future__ import annotations

import asyncio
import json
import math
import statistics
from pathlib import Path

import pytest

from console.demo import summary_of
from evaluator.judge.report import case_timing, read_trials
from evaluator.records import Evaluation, Result, Verdict, decode
from evaluator.statistics import decide, geomean
from state.journal import read_records
from state.verification import verify

HERE = Path(__file__).parents[3] / "evidence" / "first_light"
JOURNAL = HERE / "demo.jsonl"
ATTACKS = (
    "timer_python",
    "timer_native_code",
    "cache_pointer",
    "late_python_thread",
    "batch_first_call",
    "overhead_slowed",
    "comparison_patched",
    "early_start",
)


def _results() -> list[Result]:
    return [decode(Result, r.data["result"]) for r in read_records(JOURNAL) if r.kind == "job.finished"]


def _evaluations() -> list[Evaluation]:
    return [r.evaluation for r in _results() if r.evaluation is not None and r.evaluation.timings]


def test_the_demo_journal_is_whole_and_shows_every_outcome() -> None:
    assert verify(JOURNAL).problems == ()
    told = json.loads((HERE / "demo.json").read_text())
    assert len(told["promotions"]) == 2
    for outcome in ("banked", "incorrect", "compile_errors", "refused"):
        assert told[outcome], outcome
    assert told["predictions"]["made"] == told["predictions"]["reconciled"] > 0
    assert told["baseline_us"] <= 1.5 * told["compiled_us"]
    assert told["wall_s"] < 480


def test_the_demos_summary_follows_from_its_journal() -> None:
    told = json.loads((HERE / "demo.json").read_text())
    again = json.loads(json.dumps(asyncio.run(summary_of(JOURNAL)).as_json()))
    for name in (
        "run",
        "baseline_us",
        "compiled_us",
        "champion_us",
        "speedup",
        "promotions",
        "banked",
        "incorrect",
        "compile_errors",
        "refused",
    ):
        assert again[name] == told[name], name


def test_every_speed_up_follows_from_its_raw_trials() -> None:
    evaluations = _evaluations()
    assert evaluations
    for evaluation in evaluations:
        for timing in evaluation.timings:
            raw = evaluation.trials[timing.case]
            again = case_timing(read_trials(timing.case, raw), seed=raw["seed"])
            assert (again.ref_us, again.cand_us, again.speedup) == pytest.approx((timing.ref_us, timing.cand_us, timing.speedup), rel=1e-9)
            assert (again.speedup_ci.low, again.speedup_ci.high) == pytest.approx((timing.speedup_ci.low, timing.speedup_ci.high), rel=1e-9)
        assert evaluation.speedup == pytest.approx(geomean([t.speedup for t in evaluation.timings]))


def test_every_verdict_follows_from_its_pairs() -> None:
    verdicts: list[Verdict] = [r.verdict for r in _results() if r.verdict is not None]
    assert verdicts
    for verdict in verdicts:
        for case in verdict.cases:
            halves: dict[int, list[float]] = {}
            for start, f, b in zip(case.starts, case.forward, case.backward, strict=True):
                halves.setdefault(start, []).append((math.log(f) - math.log(b)) / 2)
            assert len(halves) == 4
            assert case.rho == pytest.approx(math.exp(statistics.mean(map(statistics.median, halves.values()))), rel=1e-9)
            assert case.pairs >= 20
        assert verdict.slack == pytest.approx(geomean([1 + c.slack_us / (c.candidate_us or 0.0) for c in verdict.cases]))
        decision, reason = decide(
            rho=verdict.rho,
            rho_ci=verdict.rho_ci,
            rho_wall=verdict.rho_wall,
            rho_wall_ci=verdict.rho_wall_ci,
            floor=verdict.floor,
            slowed=verdict.slowed,
            slack=verdict.slack,
        )
        assert (decision, reason) == (verdict.decision, verdict.reason)


def test_the_kills_lost_and_doubled_nothing() -> None:
    report = json.loads((HERE / "kills.json").read_text())
    assert report["faults"] == []
    assert len(report["kills"]) == 5
    assert any(kill["during"].startswith("in ") for kill in report["kills"])
    assert report["journal"]["lost"] == report["journal"]["doubled"] == []
    assert report["journal"]["rebuilt_equals_live"]


def test_each_attack_gains_nothing_with_the_gate_off_and_takes_a_naive_evaluator_in() -> None:
    result = decode(Result, json.loads((HERE / "gate_off.json").read_text()))
    assert result.qualification is not None
    off = {o.control: o for o in result.qualification.controls if not o.gate}
    for name in ATTACKS:
        outcome = off[name]
        refused = outcome.got.split(":")[0].split(",")[0] in ("incorrect", "tampered", "runtime_error")
        assert refused or (outcome.speedup is not None and outcome.speedup <= 1.02), outcome
        assert outcome.naive_correct
        assert outcome.naive_speedup is not None
        assert outcome.naive_speedup >= 1.5 or refused
