"""The reduced gate: each part alone can refuse, and no order of records gets past it without all of them."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import gate
from evaluator import records as r
from state.chain import data_of
from state.events import (
    Belief,
    CandidateSubmitted,
    ExperimentOpened,
    ExperimentReconciled,
    ExperimentReported,
    JobFinished,
    JobStarted,
    Promoted,
    Record,
    RunCreated,
)
from state.prediction import prediction_sha256
from state.reducer import fold

SHA, OTHER, CHAMPION, PROBLEM = "a" * 64, "b" * 64, "c" * 64, "p" * 64
BELIEFS = [Belief(case="small", low=1.1, high=1.6, basis="a guess")]


def interval(middle: float, width: float = 0.005) -> r.Interval:
    return r.Interval(low=middle - width, high=middle + width)


def opened(*, beliefs: list[Belief] = BELIEFS, sha256: str | None = None):
    frozen = ExperimentOpened(
        experiment="E1", idea="", title="t", base=None, champion=None, prediction=beliefs,
        prediction_sha256=sha256 or prediction_sha256(beliefs),
    )  # fmt: skip
    return [("experiment.opened", frozen)]


def submitted(sha256: str = SHA):
    return [("candidate.submitted", CandidateSubmitted(experiment="E1", sha256=sha256, bytes=3))]


def job(kind: r.JobKind, *, status: r.Status = r.Status.OK, sha256: str | None = SHA, experiment: str | None = "E1", **fields):
    request = f"kernel|p|{kind}|{next(_numbers)}"
    result = r.Result(job=request, kind=kind, status=status, problem_sha256=PROBLEM, source_sha256=sha256, fingerprint={"sha256": "f"})
    result = dataclasses.replace(result, **fields)
    started = JobStarted(request=request, kind=kind.value, experiment=experiment, candidate=sha256)
    return [("job.started", started), ("job.finished", JobFinished(request=request, result=result, experiment=experiment))]


def evaluation(*, correct: bool = True, speedup: float | None = 1.5, **fields):
    audit = r.Audit(event_us=1, wall_us=1, overhead_us=0, slack_us=0, agrees=True)
    timing = r.CaseTiming(
        case="small", ref_us=100, cand_us=64, speedup=1.5, speedup_ci=interval(1.5), speedup_mean=1.5, speedup_bound=1.5, trials=1,
        blocks=1, voided=0, audit=audit,
    )  # fmt: skip
    report = r.Evaluation(
        correct=correct, fast1=correct, fast1_raw=correct, speedup=speedup, speedup_ci=interval(1.5) if speedup else None,
        speedup_bound=speedup, score=1.5, timings=(timing, dataclasses.replace(timing, cand_us=100)),
    )  # fmt: skip
    return job(r.JobKind.EVALUATE, evaluation=report, **fields)


def verdict(
    *,
    decision: r.Decision = r.Decision.FASTER,
    champion: str | None = None,
    rho: float = 0.8,
    wall: float = 0.8,
    verified: int = 5,
    **fields,
):
    report = r.Verdict(
        decision=decision, reason="by test", rho=rho, rho_ci=interval(rho), rho_wall=wall, rho_wall_ci=interval(wall), floor=0.01, cases=(),
        champion_sha256=champion, candidate_sha256=SHA, outputs_verified=verified,
    )  # fmt: skip
    return job(r.JobKind.AB, verdict=report, **fields)


def floor(value: float = 0.02, **fields):
    return job(r.JobKind.FLOOR, floor=r.Floor(floor=value, cases=(), source_sha256=None), sha256=None, experiment=None, **fields)


def robustness(*, passed: bool = True, parts: tuple[str, ...] = gate.ROBUSTNESS_PARTS, tests: int = 3, **fields):
    found = tuple(r.RobustnessPart(name=name, passed=passed, tests=tests) for name in parts)
    return job(r.JobKind.ROBUSTNESS, robustness=r.Robustness(passed=passed, parts=found, not_checked=("new part",)), **fields)


def reconciled():
    data = ExperimentReconciled(
        experiment="E1", cases=[], surprise=None, source="ab", explanation="", correctness="correct", performance="faster",
        hypothesis="confirmed",
    )  # fmt: skip
    return [("experiment.reconciled", data)]


def reported(final: str | None = SHA):
    return [("experiment.reported", ExperimentReported(experiment="E1", conclusion="c", report="r", final=final))]


def whole() -> list:
    return [*floor(), *opened(), *submitted(), *evaluation(), *robustness(), *verdict(), *reported(), *reconciled()]


def decide(events: list):
    created = RunCreated(
        title="t", problem="p", problem_sha256=PROBLEM, problem_title="t", cases=["small"], device="cpu", model="m", profile="open",
        gate="g",
    )  # fmt: skip
    journal = [
        Record(v=1, seq=i + 1, ts="", run="r", kind=kind, actor="x", data=on_disk(kind, data), prev="", hash="")
        for i, (kind, data) in enumerate([("run.created", created), *events])
    ]
    return gate.decide(fold(journal), [record for record in journal if record.kind in gate.KINDS], experiment="E1", cause="o/1")


def on_disk(kind: str, data) -> dict:
    return msgspec.json.decode(msgspec.json.encode(data_of(kind, data)))


def failed(events: list) -> dict[str, str]:
    decided, promoted = decide(events)
    assert decided.promoted is (promoted is not None)
    return {check.name: check.detail for check in decided.checks if not check.passed}


_numbers = iter(range(10**9))


def test_the_whole_record_is_promoted_with_its_figures():
    decided, promoted = decide(whole())
    assert decided.promoted
    assert decided.gate == "reduced gate (first light)"
    assert (decided.correctness, decided.performance, decided.hypothesis, decided.retention) == (
        "correct",
        "faster",
        "confirmed",
        "promoted",
    )
    assert {"value regimes", "permuted batches", "poisoned allocator", "memory checker", "policy", "new part"} <= set(decided.not_checked)
    assert promoted == Promoted(
        number=1, experiment="E1", sha256=SHA, previous=None, rho=0.8, speedup=1.5, champion_us=pytest.approx(math.sqrt(64 * 100)),
        gate=gate.NAME, not_checked=decided.not_checked,
    )  # fmt: skip


CASES = {
    "no experiment": (lambda: [*floor()], "candidate", "there is no experiment"),
    "reported without a candidate": (lambda: [*whole(), *reported(None)], "candidate", "stands for no candidate"),
    "reported another text": (lambda: [*whole(), *reported(OTHER)], "candidate", "was not submitted"),
    "edited prediction": (lambda: [*floor(), *opened(sha256="0" * 64), *whole()[3:]], "prediction", "does not have the hash"),
    "measured before it was frozen": (lambda: [*evaluation(), *whole()], "prediction", "measured this before"),
    "text measured elsewhere before": (lambda: [*evaluation(experiment=None), *whole()], "prediction", "measured this before"),
    "incorrect": (lambda: [*whole(), *evaluation(status=r.Status.INCORRECT)], "evaluation", "incorrect"),
    "report says incorrect": (lambda: [*whole(), *evaluation(correct=False)], "evaluation", "not correct"),
    "no interval": (lambda: [*whole(), *evaluation(speedup=None)], "evaluation", "no speed-up"),
    "other profile": (lambda: [*whole(), *evaluation(profile="seed")], "evaluation", "profile seed"),
    "other problem": (lambda: [*whole(), *evaluation(problem_sha256="x")], "evaluation", "another version of the problem"),
    "no floor": (lambda: whole()[2:], "floor", "no A/A"),
    "floor of another machine": (lambda: [*whole(), *floor(fingerprint={"sha256": "other"})], "floor", "another device"),
    "unresolved": (lambda: [*whole(), *verdict(decision=r.Decision.UNRESOLVED)], "a/b", "unresolved: by test"),
    "below the run's floor": (lambda: [*whole(), *floor(0.25)], "a/b", "not above the floor"),
    "only events say so": (lambda: [*whole(), *verdict(wall=0.999)], "a/b", "wall clock does not confirm"),
    "nothing verified": (lambda: [*whole(), *verdict(verified=0)], "a/b", "verified no output"),
    "against an earlier champion": (lambda: [*whole(), *verdict(champion=CHAMPION)], "a/b", "stale: it was against cccccccccccc"),
    "robustness failed": (lambda: [*whole(), *robustness(passed=False)], "robustness", "failed: many seeds"),
    "a part did not run": (lambda: [*whole(), *robustness(parts=gate.ROBUSTNESS_PARTS[:3])], "robustness", "did not run: sizes"),
    "a part ran no test": (lambda: [*whole(), *robustness(tests=0)], "robustness", "did not run: many seeds"),
    "not reconciled": (lambda: whole()[:-1], "reconciliation", "is not reconciled"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_part_alone_refuses(name):
    events, part, words = CASES[name]
    found = failed(events())
    assert words in found[part]
    if name not in ("no experiment", "reported without a candidate", "reported another text"):
        assert list(found) == [part]


def test_sizes_that_the_problem_does_not_declare_are_named_as_not_checked():
    parts = tuple(r.RobustnessPart(name=name, passed=True, tests=0 if name == "sizes" else 3) for name in gate.ROBUSTNESS_PARTS)
    report = r.Robustness(passed=True, parts=parts)
    decided, _ = decide([*whole(), *job(r.JobKind.ROBUSTNESS, robustness=report)])
    assert decided.promoted
    assert "sizes (the problem declares none)" in decided.not_checked


def test_the_parts_are_the_evaluators_own():
    source = (Path(__file__).resolve().parents[3] / "evaluator" / "judge" / "robustness.py").read_text()
    assert [name for name in gate.ROBUSTNESS_PARTS if f'"{name}"' not in source] == []


def test_a_fault_of_the_infrastructure_does_not_take_a_verdict_back():
    assert failed([*whole(), *verdict(status=r.Status.EVALUATOR_ERROR), *evaluation(status=r.Status.EVALUATOR_ERROR)]) == {}


def test_reconciled_before_the_ab_does_not_count():
    events = [*floor(), *opened(), *submitted(), *evaluation(), *robustness(), *reconciled(), *verdict(), *reported()]
    assert "before its A/B" in failed(events)["reconciliation"]


def test_the_champion_itself_is_not_promoted_again():
    _, promoted = decide(whole())
    assert "champion already" in failed([*whole(), ("promotion", promoted)])["candidate"]


VARIANTS = {
    "floor": [(floor, True)],
    "opened": [(opened, True), (lambda: opened(sha256="0" * 64), False), (lambda: opened(beliefs=[]), False)],
    "submitted": [(submitted, True), (lambda: submitted(OTHER), None)],
    "evaluate": [(evaluation, True), (lambda: evaluation(status=r.Status.TAMPERED), False), (lambda: evaluation(sha256=OTHER), None)],
    "ab": [(verdict, True), (lambda: verdict(decision=r.Decision.SLOWER), False), (lambda: verdict(rho=0.99), False)],
    "robustness": [(robustness, True), (lambda: robustness(passed=False), False), (lambda: robustness(status=r.Status.TIMEOUT), False)],
    "reconciled": [(reconciled, True)],
    "reported": [(reported, True)],
}
STEPS = [(part, number) for part, variants in VARIANTS.items() for number in range(len(variants))]


def should_promote(steps: list[tuple[str, int]]) -> bool:
    """The rule again, over steps: the first prediction is good and precedes every job of the experiment, the latest of
    each measurement of this text is good, and the reconciliation follows the first A/B."""
    good = [(part, VARIANTS[part][number][1]) for part, number in steps if VARIANTS[part][number][1] is not None]
    parts = [part for part, _ in good]
    if not set(VARIANTS) <= set(parts):
        return False
    any_job = min(i for i, (part, _) in enumerate(steps) if part in ("evaluate", "ab", "robustness"))
    first_opened = steps.index(next(step for step in steps if step[0] == "opened"))
    if first_opened > any_job or not VARIANTS["opened"][steps[first_opened][1]][1]:
        return False
    latest = dict(good)
    last_reconciled = max(i for i, part in enumerate(parts) if part == "reconciled")
    return all(latest[part] for part in ("evaluate", "ab", "robustness")) and last_reconciled > parts.index("ab")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=14))
def test_random_records_never_promote_without_all_parts(steps):
    events = [event for part, number in steps for event in VARIANTS[part][number][0]()]
    decided, promoted = decide([*events, *reported()] if any(part == "reported" for part, _ in steps) else events)
    if decided.promoted or promoted:
        assert should_promote([*steps])


@settings(max_examples=200, deadline=None)
@given(
    st.permutations(["floor", "opened", "submitted", "evaluate", "ab", "robustness", "reconciled", "reported"]),
    st.lists(st.sampled_from(STEPS), max_size=2),
)
def test_whole_records_in_any_order_promote_exactly_when_the_rule_says(order, extra):
    steps = [*extra, *[(part, 0) for part in order]]
    events = [event for part, number in steps for event in VARIANTS[part][number][0]()]
    opened_first = next((i for i, (kind, _) in enumerate(events) if kind == "experiment.opened"), len(events))
    # What refers to an experiment before it was opened is not part of it.
    early = [kind for kind, _ in events[:opened_first] if kind in ("candidate.submitted", "experiment.reported")]
    decided, _ = decide(events)
    if early:
        return
    assert decided.promoted is should_promote(steps)
