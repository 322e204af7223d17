"""The A/B rule and the audit of the two clocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator import statistics
from evaluator.records import Decision, Interval
from evaluator.statistics import Agreement


def rule(rho, events, rho_wall, wall, floor=0.01):
    return statistics.decide(
        rho=rho,
        rho_ci=Interval(low=events[0], high=events[1]),
        rho_wall=rho_wall,
        rho_wall_ci=Interval(low=wall[0], high=wall[1]),
        floor=floor,
    )


def test_faster_on_both_clocks():
    decision, reason = rule(0.95, (0.94, 0.96), 0.955, (0.93, 0.98))
    assert decision is Decision.FASTER
    assert reason == "faster on both clocks: rho 0.9500 [0.9400, 0.9600] by events, 0.9550 [0.9300, 0.9800] by the wall, floor 1.00 %"


def test_slower_is_the_mirror_image():
    decision, reason = rule(1.05, (1.04, 1.06), 1.045, (1.02, 1.07))
    assert decision is Decision.SLOWER
    assert reason.startswith("slower on both clocks")


@pytest.mark.parametrize(
    ("rho", "events", "rho_wall", "wall", "words"),
    [
        (1.0, (0.98, 1.02), 1.0, (0.97, 1.03), "the interval contains 1"),
        (0.994, (0.992, 0.996), 0.994, (0.99, 0.998), "a difference below the floor"),
        (1.004, (1.002, 1.006), 1.004, (1.001, 1.008), "a difference below the floor"),
        (0.985, (0.975, 0.995), 0.985, (0.97, 0.999), "does not clear the floor"),
        (0.95, (0.94, 0.96), 0.99, (0.93, 1.03), "the wall cannot tell"),
        (0.60, (0.59, 0.61), 0.97, (0.95, 0.99), "does not contain the events' rho"),
        (0.60, (0.59, 0.61), 1.20, (1.10, 1.30), "the wall cannot tell"),
    ],
)
def test_everything_else_is_unresolved_with_its_reason(rho, events, rho_wall, wall, words):
    decision, reason = rule(rho, events, rho_wall, wall)
    assert decision is Decision.UNRESOLVED
    assert words in reason


def test_a_bound_on_the_edge_does_not_clear_the_floor():
    assert rule(0.98, (0.97, 0.99), 0.98, (0.97, 0.995), floor=0.01)[0] is Decision.UNRESOLVED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((float("nan"), (0.9, 1.0), 1.0, (0.9, 1.1)), "positive finite"),
        ((1.2, (0.9, 1.0), 1.0, (0.9, 1.1)), "does not contain its point"),
        ((1.0, (0.9, 1.0), 1.0, (0.9, 1.1), -0.1), "floor"),
    ],
)
def test_senseless_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        rule(*arguments)


@pytest.mark.parametrize(
    ("rho", "slowed", "floor", "decision"),
    [
        (0.9, 1.01, 0.005, "faster"),
        (0.9, 1.15, 0.005, "unresolved"),
        (0.9, 1.05, 0.03, "faster"),
        (0.33, 3.0, 0.03, "unresolved"),
        (0.286, 1.212, 0.046, "faster"),
        (0.5, 1.9, 0.05, "unresolved"),
        (1.2, 1.5, 0.01, "slower"),
    ],
)
def test_what_a_champion_lost_beside_its_rival_is_no_gain(rho, slowed, floor, decision):
    """A gain that stands with the champion's whole loss put back is a gain; one that does not is nobody's."""
    interval = Interval(low=rho * 0.99, high=rho * 1.01)
    decided, words = statistics.decide(rho=rho, rho_ci=interval, rho_wall=rho, rho_wall_ci=interval, floor=floor, slowed=slowed)
    assert decided == decision
    assert (f"the champion took {slowed:.3f} times as long" in words) is (slowed > 1 + max(0.02, 2 * floor))


def test_noise_floor_is_the_far_end_of_the_interval():
    assert statistics.noise_floor(Interval(low=0.97, high=1.01)) == pytest.approx(0.03)
    assert statistics.noise_floor(Interval(low=1.002, high=1.01)) == pytest.approx(0.01)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 3.0), st.floats(0.0, 0.3), st.floats(0.3, 3.0), st.floats(0.0, 0.3), st.floats(0.0, 0.2))
def test_no_call_without_both_clocks(rho, width, rho_wall, wall_width, floor):
    events, wall = (rho * (1 - width), rho * (1 + width)), (rho_wall * (1 - wall_width), rho_wall * (1 + wall_width))
    decision, _ = rule(rho, events, rho_wall, wall, floor)
    if decision is Decision.FASTER:
        assert events[1] < 1 - floor
        assert wall[1] < 1
        assert wall[0] <= rho <= wall[1]
    if decision is Decision.SLOWER:
        assert events[0] > 1 + floor
        assert wall[0] > 1
        assert wall[0] <= rho <= wall[1]


def simulated(rng, *, true_rho, pairs=20):
    """Both clocks' ratios of counterbalanced pairs: slot bias, heavy tails, and a wall noisier than the events."""
    bias = 1.03
    tails = 1 + np.abs(rng.standard_t(3, (2, pairs))) * 0.01
    events = rng.lognormal(0, 0.01, (2, pairs)) * tails / np.median(tails)
    wall = events * rng.lognormal(0, 0.01, (2, pairs))
    return [
        statistics.PairedRatios(forward=(true_rho * bias * clock[0]).tolist(), backward=(bias / true_rho * clock[1]).tolist())
        for clock in (events, wall)
    ]


def decide_simulated(rng, seed, true_rho, floor):
    events, wall = (statistics.pair_ratio(data, seed=seed, resamples=300) for data in simulated(rng, true_rho=true_rho))
    return statistics.decide(rho=events.rho, rho_ci=events.rho_ci, rho_wall=wall.rho, rho_wall_ci=wall.rho_ci, floor=floor)[0]


def test_identical_sides_are_rarely_called_different():
    rng = np.random.default_rng(20261130)
    decisions = [decide_simulated(rng, seed, 1.0, 0.005) for seed in range(150)]
    assert sum(d is not Decision.UNRESOLVED for d in decisions) <= 2


def test_a_real_difference_well_above_the_floor_is_usually_found():
    rng = np.random.default_rng(20261201)
    decisions = [decide_simulated(rng, seed, 0.9, 0.005) for seed in range(40)]
    assert decisions.count(Decision.FASTER) >= 34
    assert decisions.count(Decision.SLOWER) == 0


def audit(event, wall, *, overhead=20.0, slack=3.0):
    return statistics.audit_blocks(event_us=event, wall_us=wall, overhead_us=overhead, slack_us=slack)


def test_clocks_that_agree():
    found = audit([[190.0, 191.0, 192.0]] * 10, [[212.0, 211.0, 210.0]] * 10)
    assert (found.agreement, found.disagreeing, found.blocks) == (Agreement.AGREES, 0, 10)
    assert (found.audit.event_us, found.audit.wall_us, found.audit.overhead_us, found.audit.agrees) == (191.0, 211.0, 20.0, True)


def test_more_than_the_slack_lets_the_wall_decide():
    found = audit([[150.0]] * 10, [[211.0]] * 10)
    assert (found.agreement, found.disagreeing, found.gross, found.audit.agrees) == (Agreement.WALL_DECIDES, 10, 0, False)
    assert "more than 3.0 us in 10 of 10 blocks" in found.reason


def test_a_forged_clock_is_gross_in_either_direction():
    assert audit([[9.0]] * 10, [[211.0]] * 10).agreement is Agreement.GROSS
    assert audit([[2000.0]] * 10, [[211.0]] * 10).agreement is Agreement.GROSS


def test_single_wake_ups_of_a_busy_machine_are_not_tampering():
    events, walls = [[190.0]] * 10, [[210.0]] * 9 + [[4000.0]]
    found = audit(events, walls)
    assert (found.agreement, found.gross) == (Agreement.AGREES, 1)
    three = audit(events, [[210.0]] * 7 + [[4000.0]] * 3)
    assert three.agreement is Agreement.WALL_DECIDES


def test_the_trial_time_never_falls_below_the_wall_less_overhead():
    assert statistics.trial_times(event_us=[1.0, 300.0], wall_us=[220.0, 220.0], overhead_us=20.0) == [200.0, 300.0]


def test_unequal_shapes_are_refused():
    with pytest.raises(ValueError, match="2 blocks of events against 1"):
        audit([[1.0], [1.0]], [[1.0]])
    with pytest.raises(ValueError, match="2 event times against 1"):
        statistics.trial_times(event_us=[1.0, 1.0], wall_us=[2.0], overhead_us=0.0)
    with pytest.raises(ValueError, match="negative"):
        statistics.trial_times(event_us=[-1.0], wall_us=[2.0], overhead_us=0.0)


@pytest.mark.parametrize(
    ("slack", "slowed", "decision", "words"),
    [
        (1.0, 1.0, Decision.FASTER, "faster on both clocks"),
        (1.02, 1.0, Decision.FASTER, "slack 2.00 %"),
        (1.06, 1.0, Decision.UNRESOLVED, "within slack"),
        (1.03, 1.05, Decision.UNRESOLVED, "within slack"),
        (1.0, 1.12, Decision.UNRESOLVED, "what the champion lost"),
    ],
)
def test_what_a_runner_could_save_without_computing_faster_is_no_gain(slack, slowed, decision, words):
    interval = Interval(low=0.91, high=0.94)
    found, reason = statistics.decide(
        rho=0.92, rho_ci=interval, rho_wall=0.92, rho_wall_ci=interval, floor=0.01, slack=slack, slowed=slowed
    )
    assert found is decision
    assert words in reason


def test_the_wall_must_exclude_one_with_the_slack_as_well():
    events, wall = Interval(low=0.80, high=0.90), Interval(low=0.82, high=0.98)
    assert statistics.decide(rho=0.85, rho_ci=events, rho_wall=0.9, rho_wall_ci=wall, floor=0.01, slack=1.01)[0] is Decision.FASTER
    found, reason = statistics.decide(rho=0.85, rho_ci=events, rho_wall=0.9, rho_wall_ci=wall, floor=0.01, slack=1.03)
    assert (found, reason.split(":")[0]) == (Decision.UNRESOLVED, "within slack")


def test_a_slack_never_makes_anything_slower_and_is_a_factor():
    interval = Interval(low=1.2, high=1.3)
    assert statistics.decide(rho=1.25, rho_ci=interval, rho_wall=1.25, rho_wall_ci=interval, floor=0.01, slack=1.5)[0] is Decision.SLOWER
    with pytest.raises(ValueError, match="slack"):
        statistics.decide(rho=1.25, rho_ci=interval, rho_wall=1.25, rho_wall_ci=interval, floor=0.01, slack=0.9)
