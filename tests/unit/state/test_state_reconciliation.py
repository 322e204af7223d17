from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator import records as r
from state.events import Belief, CaseReconciliation, ClaimChange
from state.reconciliation import (
    Measured,
    answers_surprise,
    correctness_word,
    from_evaluations,
    from_verdict,
    hypothesis_word,
    interval_score,
    largest_surprise,
    performance_word,
    reconcile,
    requires_world_model_change,
)

LN2 = math.log(2)


def belief(case: str = "long", low: float = 1.0, high: float = 4.0, level: float = 0.8) -> Belief:
    return Belief(case=case, low=low, high=high, basis="b", level=level)


def one(low: float, high: float, measured: float, level: float = 0.8) -> CaseReconciliation:
    return reconcile([belief(low=low, high=high, level=level)], {"long": Measured(ratio=measured)})[0]


def test_a_prediction_that_holds() -> None:
    line = one(1, 4, 2)
    assert (line.log_error, line.covered, line.surprise) == (pytest.approx(0), True, pytest.approx(0))
    assert line.interval_score == pytest.approx(2 * LN2)


def test_a_prediction_that_misses_upwards() -> None:
    line = one(1, 4, 8)
    assert line.log_error == pytest.approx(2 * LN2)
    assert line.covered is False
    assert line.surprise == pytest.approx(2)
    assert line.interval_score == pytest.approx(2 * LN2 + 2 / 0.2 * LN2)


def test_a_prediction_that_misses_downwards() -> None:
    line = one(1, 4, 0.5, level=0.9)
    assert line.log_error == pytest.approx(-2 * LN2)
    assert line.surprise == pytest.approx(2)
    assert line.interval_score == pytest.approx(2 * LN2 + 2 / 0.1 * LN2)


def test_a_degenerate_interval_has_a_finite_surprise() -> None:
    line = one(1.2, 1.2 + 1e-12, 1.2 * 1.01**3)
    assert line.surprise == pytest.approx(3)


def test_a_predicted_case_that_was_not_measured() -> None:
    line = reconcile([belief()], {})[0]
    assert (line.predicted_low, line.predicted_high, line.measured, line.surprise, line.covered) == (1.0, 4.0, None, None, None)
    assert largest_surprise([line]) is None


@pytest.mark.parametrize(
    ("measured", "floor", "surprise"),
    [
        (Measured(ratio=1.02**3), 0.0, 3.0),
        (Measured(ratio=1 / 1.02**3), 0.0, 3.0),
        (Measured(ratio=1.1**2), 0.1, 2.0),
        (Measured(ratio=1.3, low=1.2, high=1.4), 0.0, math.log(1.3) / math.log(1.02)),
        (Measured(ratio=1.3, low=0.9, high=1.9), 0.0, 0.0),
        (Measured(ratio=1.0), 0.5, 0.0),
    ],
)
def test_a_case_nobody_predicted_counts_when_it_moved(measured: Measured, floor: float, surprise: float) -> None:
    line = reconcile([], {"short": measured}, floor_by_case={"short": floor})[0]
    assert (line.case, line.predicted_low, line.covered, line.interval_score) == ("short", None, None, None)
    assert line.surprise == pytest.approx(surprise)
    assert line.log_error == pytest.approx(math.log(measured.ratio))


def test_the_order_of_lines_and_the_largest_surprise() -> None:
    lines = reconcile([belief("b"), belief("a")], {"c": Measured(ratio=1.02**5), "a": Measured(ratio=2.0), "d": Measured(ratio=1.0)})
    assert [line.case for line in lines] == ["b", "a", "c", "d"]
    assert largest_surprise(lines) == pytest.approx(5)


@given(low=st.floats(0.01, 10), width=st.floats(1.03, 10), ratio=st.floats(0.01, 100), level=st.floats(0.05, 0.95))
def test_the_arithmetic_is_consistent(low: float, width: float, ratio: float, level: float) -> None:
    high = low * width
    line = one(low, high, ratio, level)
    assert line.surprise is not None
    assert line.log_error is not None
    assert line.interval_score is not None
    assert line.surprise == pytest.approx(abs(line.log_error) / (math.log(width) / 2), rel=1e-6)
    if line.covered:
        assert line.surprise <= 1 + 1e-6
        assert line.interval_score == pytest.approx(math.log(width))
    else:
        assert line.surprise >= 1 - 1e-6
        assert line.interval_score >= math.log(width) - 1e-9
    mirrored = one(1 / high, 1 / low, 1 / ratio, level)
    assert mirrored.surprise == pytest.approx(line.surprise, abs=1e-9)
    assert mirrored.interval_score == pytest.approx(line.interval_score, abs=1e-6)


@given(value=st.floats(-5, 5))
def test_the_interval_score_is_least_inside(value: float) -> None:
    score = interval_score(-1, 1, value, level=0.5)
    assert score == pytest.approx(2 + 4 * max(0.0, abs(value) - 1))


def ratio(case: str, rho: float, low: float, high: float) -> r.CaseRatio:
    interval = r.Interval(low=low, high=high)
    return r.CaseRatio(case=case, rho=rho, rho_ci=interval, rho_wall=rho, rho_wall_ci=interval, slot_bias=1.0, floor=0.01, pairs=20)


def verdict(decision: r.Decision = r.Decision.FASTER) -> r.Verdict:
    interval = r.Interval(low=0.4, high=0.8)
    return r.Verdict(
        decision=decision,
        reason="",
        rho=0.5,
        rho_ci=interval,
        rho_wall=0.5,
        rho_wall_ci=interval,
        floor=0.01,
        cases=(ratio("long", 0.5, 0.4, 0.8),),
        champion_sha256=None,
        candidate_sha256="a",
        outputs_verified=1,
    )


def evaluation(**speedups: tuple[float, float, float]) -> r.Evaluation:
    audit = r.Audit(event_us=1, wall_us=1, overhead_us=0, slack_us=0, agrees=True)
    timings = tuple(
        r.CaseTiming(
            case=case,
            ref_us=s,
            cand_us=1.0,
            speedup=s,
            speedup_ci=r.Interval(low=low, high=high),
            speedup_mean=s,
            speedup_bound=s,
            trials=1,
            blocks=1,
            voided=0,
            audit=audit,
        )
        for case, (s, low, high) in speedups.items()
    )
    return r.Evaluation(correct=True, fast1=True, fast1_raw=True, speedup=1, speedup_ci=None, speedup_bound=1, score=1, timings=timings)


def test_an_ab_is_inverted_with_its_interval() -> None:
    assert from_verdict(verdict()) == {"long": Measured(ratio=2.0, low=1.25, high=2.5)}


def test_two_evaluations_are_divided() -> None:
    candidate = evaluation(long=(3.0, 2.0, 4.5), short=(2.0, 2.0, 2.0), mine=(1.0, 1.0, 1.0))
    champion = evaluation(long=(1.5, 1.5, 1.5), short=(1.0, 0.5, 4.0), theirs=(1.0, 1.0, 1.0))
    found = from_evaluations(candidate, champion)
    assert set(found) == {"long", "short"}
    assert found["long"].ratio == pytest.approx(2)
    assert (found["long"].low, found["long"].high) == (pytest.approx(4 / 3), pytest.approx(3))
    assert (found["short"].low, found["short"].high) == (pytest.approx(0.5), pytest.approx(4))


def test_against_the_reference_the_speedup_is_the_ratio() -> None:
    assert from_evaluations(evaluation(long=(3.0, 2.0, 4.5)), None) == {"long": Measured(ratio=3.0, low=2.0, high=4.5)}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (None, "untested"),
        (r.Status.EVALUATOR_ERROR, "untested"),
        (r.Status.OK, "correct"),
        (r.Status.INCORRECT, "incorrect"),
        (r.Status.TAMPERED, "tampered"),
    ],
)
def test_correctness_words(status: r.Status | None, word: str) -> None:
    assert correctness_word(status) == word


@pytest.mark.parametrize(
    ("found", "ratios", "floor", "word"),
    [
        (verdict(), [], 0.0, "faster"),
        (verdict(r.Decision.SLOWER), [2.0], 0.0, "slower"),
        (verdict(r.Decision.UNRESOLVED), [2.0], 0.0, "unresolved"),
        (None, [], 0.0, "untested"),
        (None, [1.1, 1.1], 0.05, "faster"),
        (None, [0.9, 0.9], 0.05, "slower"),
        (None, [1.04, 1.04], 0.05, "unresolved"),
        (None, [2.0, 0.5], 0.05, "unresolved"),
    ],
)
def test_performance_words(found: r.Verdict | None, ratios: list[float], floor: float, word: str) -> None:
    measured = {str(i): Measured(ratio=x) for i, x in enumerate(ratios)}
    assert performance_word(found, measured, floor=floor) == word


@pytest.mark.parametrize(
    ("measured", "word"),
    [
        ({"long": Measured(ratio=1.5)}, "confirmed"),
        ({"long": Measured(ratio=0.9)}, "refuted"),
        ({"long": Measured(ratio=0.98, low=0.94, high=1.02)}, "confirmed"),
        ({"long": Measured(ratio=4.5, low=4.2, high=4.8)}, "refuted"),
        ({"other": Measured(ratio=9.0)}, "untested"),
        ({}, "untested"),
    ],
)
def test_hypothesis_words(measured: dict[str, Measured], word: str) -> None:
    assert hypothesis_word(reconcile([belief()], measured)) == word


@pytest.mark.parametrize(("surprise", "needed"), [(None, False), (0.0, False), (1.999, False), (2.0, True), (9.0, True)])
def test_when_the_world_model_must_change(surprise: float | None, needed: bool) -> None:
    assert requires_world_model_change(surprise) is needed


@pytest.mark.parametrize(
    ("claim", "before", "after", "answers"),
    [("C1", 0.7, 0.6, True), ("C1", 0.5, 0.6, True), ("C1", 0.7, 0.65, False), ("C2", 0.9, 0.1, False), ("C9", None, 0.6, True)],
)
def test_what_answers_a_surprise(claim: str, before: float | None, after: float, answers: bool) -> None:
    change = ClaimChange(claim=claim, before=before, after=after, why="w")
    assert answers_surprise(["C1"], [change]) is answers
    assert answers_surprise(["C1"], []) is False
