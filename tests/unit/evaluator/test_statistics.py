"""Speed-ups, ratios, intervals: properties that hold for any data, and values worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator import statistics

times = st.floats(min_value=0.5, max_value=5e5)
ratios = st.floats(min_value=0.2, max_value=5.0)
factors = st.floats(min_value=0.05, max_value=20.0)
pairs = st.lists(st.tuples(ratios, ratios), min_size=2, max_size=24)
blocks = st.lists(st.tuples(st.lists(times, min_size=1, max_size=5), st.lists(times, min_size=1, max_size=5)), min_size=2, max_size=8)
quick = settings(max_examples=25, deadline=None)


def pair_data(drawn):
    return statistics.PairedRatios(forward=[f for f, _ in drawn], backward=[b for _, b in drawn])


def block_data(drawn, *, scale=1.0):
    return statistics.CaseBlocks(ref=[[t * scale for t in r] for r, _ in drawn], cand=[[t * scale for t in c] for _, c in drawn])


def scaled(data, *, forward=1.0, backward=1.0):
    return statistics.PairedRatios(forward=[f * forward for f in data.forward], backward=[b * backward for b in data.backward])


@quick
@given(pairs, factors)
def test_rho_does_not_move_under_any_slot_bias(drawn, bias):
    data = pair_data(drawn)
    plain = statistics.pair_ratio(data, seed=1, resamples=50)
    biased = statistics.pair_ratio(scaled(data, forward=bias, backward=bias), seed=1, resamples=50)
    assert biased.rho == pytest.approx(plain.rho, rel=1e-9)
    assert biased.rho_ci.low == pytest.approx(plain.rho_ci.low, rel=1e-9)
    assert biased.slot_bias == pytest.approx(plain.slot_bias * bias, rel=1e-9)


@quick
@given(pairs)
def test_swapping_the_sides_inverts_rho_and_keeps_the_bias(drawn):
    data = pair_data(drawn)
    swapped = statistics.PairedRatios(forward=data.backward, backward=data.forward)
    one, other = (statistics.pair_ratio(d, seed=7, resamples=200) for d in (data, swapped))
    assert other.rho == pytest.approx(1 / one.rho, rel=1e-9)
    assert other.rho_ci.low == pytest.approx(1 / one.rho_ci.high, rel=1e-9)
    assert other.rho_ci.high == pytest.approx(1 / one.rho_ci.low, rel=1e-9)
    assert other.slot_bias == pytest.approx(one.slot_bias, rel=1e-9)


@quick
@given(pairs)
def test_the_pair_interval_contains_the_point(drawn):
    found = statistics.pair_ratio(pair_data(drawn), seed=3, resamples=60)
    assert found.rho_ci.low <= found.rho <= found.rho_ci.high
    assert found.slot_bias_ci.low <= found.slot_bias <= found.slot_bias_ci.high


def test_rho_and_bias_of_a_known_pair():
    data = statistics.PairedRatios(forward=[0.9 * 1.02] * 6, backward=[1.02 / 0.9] * 6)
    found = statistics.pair_ratio(data, seed=0)
    assert found.rho == pytest.approx(0.9)
    assert found.slot_bias == pytest.approx(1.02)
    assert (found.rho_ci.low, found.rho_ci.high, found.pairs) == (pytest.approx(0.9), pytest.approx(0.9), 6)


def test_identical_data_gives_rho_one():
    found = statistics.pair_ratio(statistics.PairedRatios(forward=[1.0] * 20, backward=[1.0] * 20), seed=5)
    assert (found.rho, found.rho_ci.low, found.rho_ci.high, found.slot_bias) == (1.0, 1.0, 1.0, 1.0)


def test_geomean_over_cases_is_the_geometric_mean_of_their_ratios():
    cases = [statistics.PairedRatios(forward=[r] * 4, backward=[1 / r] * 4) for r in (0.5, 0.98)]
    assert statistics.geomean_pairs(cases, seed=0).rho == pytest.approx(math.sqrt(0.5 * 0.98))


def test_unequal_orders_are_refused():
    with pytest.raises(ValueError, match="3 forward pairs against 2 backward"):
        statistics.pair_ratio(statistics.PairedRatios(forward=[1.0] * 3, backward=[1.0] * 2), seed=0)


@quick
@given(blocks)
def test_the_speedup_interval_contains_the_point(drawn):
    found = statistics.speedup(block_data(drawn), seed=11, resamples=60)
    assert found.interval.low <= found.value <= found.interval.high


@quick
@given(blocks, factors)
def test_scaling_both_sides_changes_nothing(drawn, scale):
    one = statistics.speedup(block_data(drawn), seed=11, resamples=40)
    other = statistics.speedup(block_data(drawn, scale=scale), seed=11, resamples=40)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    assert other.interval.low == pytest.approx(one.interval.low, rel=1e-9)
    assert statistics.mean_speedup(block_data(drawn, scale=scale)) == pytest.approx(statistics.mean_speedup(block_data(drawn)), rel=1e-9)


def test_speedup_pools_trials_of_blocks_of_unequal_size():
    data = statistics.CaseBlocks(ref=[[10.0] * 9, [30.0]], cand=[[5.0], [5.0, 5.0]])
    assert statistics.speedup(data, seed=0).value == 2.0


def test_partner_blocks_are_resampled_together():
    drift = [1.0, 2.0, 4.0, 8.0, 16.0]
    data = statistics.CaseBlocks(ref=[[6.0 * d] for d in drift], cand=[[3.0 * d] for d in drift])
    found = statistics.speedup(data, seed=0)
    assert (found.value, found.interval.low, found.interval.high) == (2.0, 2.0, 2.0)


def test_the_faster_reference_counts():
    data = statistics.CaseBlocks(ref=[[10.0], [10.0]], cand=[[5.0], [5.0]], alone_us=8.0)
    assert statistics.speedup(data, seed=0).value == pytest.approx(1.6)
    assert statistics.mean_speedup(data) == pytest.approx(1.6)
    slow = statistics.CaseBlocks(ref=[[10.0], [10.0]], cand=[[5.0], [5.0]], alone_us=12.0)
    assert statistics.speedup(slow, seed=0).value == 2.0


def test_geomean_speedup_over_cases():
    cases = [statistics.CaseBlocks(ref=[[r], [r]], cand=[[1.0], [1.0]]) for r in (2.0, 8.0)]
    assert statistics.geomean_speedup(cases, seed=0).value == pytest.approx(4.0)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    rng = np.random.default_rng(4)
    data = statistics.CaseBlocks(ref=rng.lognormal(3, 0.2, (12, 4)).tolist(), cand=rng.lognormal(3, 0.2, (12, 4)).tolist())
    one, same, other = (statistics.speedup(data, seed=s) for s in (21, 21, 22))
    assert one == same
    assert one.interval != other.interval
    assert (one.seed, one.resamples, one.interval.level) == (21, 2000, 0.95)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(9)
    hits = 0
    for trial in range(120):
        drift = rng.lognormal(0, 0.05, (20, 1))
        ref, cand = (base * drift * rng.lognormal(0, 0.03, (20, 4)) for base in (130.0, 100.0))
        found = statistics.speedup(statistics.CaseBlocks(ref=ref.tolist(), cand=cand.tolist()), seed=trial, resamples=200)
        hits += found.interval.low <= 1.3 <= found.interval.high
    assert 106 <= hits <= 120


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-320])
def test_a_time_that_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match="positive finite"):
        statistics.speedup(statistics.CaseBlocks(ref=[[1.0], [1.0]], cand=[[1.0], [bad]]), seed=0)
    with pytest.raises(ValueError, match="positive finite"):
        statistics.pair_ratio(statistics.PairedRatios(forward=[1.0, bad], backward=[1.0, 1.0]), seed=0)
    with pytest.raises(ValueError, match="positive finite"):
        statistics.geomean([2.0, bad])


def test_one_block_is_not_enough_for_an_interval():
    with pytest.raises(ValueError, match="at least two units"):
        statistics.speedup(statistics.CaseBlocks(ref=[[1.0]], cand=[[1.0]]), seed=0)


def test_overhead_takes_the_smaller_low_quantile():
    before, loaded = [22.0] * 9 + [10.0], [40.0] * 50
    assert statistics.overhead(loaded, before) == statistics.overhead(before, loaded)
    assert 10.0 < statistics.overhead(before, loaded) <= 22.0
    assert statistics.low_quantile([1.0, 2.0, 3.0], quantile=0.5) == 2.0


def test_relative_iqr():
    assert statistics.relative_iqr([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert statistics.relative_iqr([7.0] * 5) == 0.0


def started(rhos, pairs=5):
    """Pairs without noise: each start of the two processes has a ratio of its own."""
    values = [rho for rho in rhos for _ in range(pairs)]
    starts = [start for start, _ in enumerate(rhos) for _ in range(pairs)]
    return statistics.PairedRatios(forward=values, backward=[1 / v for v in values], starts=starts)


def test_what_differs_between_starts_is_in_the_interval():
    found = statistics.pair_ratio(started([0.9, 0.95, 1.0, 1.05]), seed=0)
    logs = np.log([0.9, 0.95, 1.0, 1.05])
    reach = 3.182446 * logs.std(ddof=1) / 2  # t(0.975, 3)
    assert found.rho == pytest.approx(math.exp(logs.mean()))
    assert found.rho_ci.low == pytest.approx(math.exp(logs.mean() - reach), rel=1e-6)
    assert found.rho_ci.high == pytest.approx(math.exp(logs.mean() + reach), rel=1e-6)


def test_starts_of_several_cases_are_taken_together():
    """Opposite luck in two cases cancels in each start's geometric mean."""
    found = statistics.geomean_pairs([started([0.9, 1.0, 1.1]), started([1 / 0.9, 1.0, 1 / 1.1])], seed=0)
    assert found.rho == pytest.approx(1.0)
    alone = statistics.geomean_pairs([started([0.9, 1.0, 1.1])], seed=0)
    assert found.rho_ci.high - found.rho_ci.low < alone.rho_ci.high - alone.rho_ci.low


def test_the_interval_over_starts_covers_a_null_of_unlucky_processes():
    rng = np.random.default_rng(4)
    inside = 0
    for seed in range(200):
        found = statistics.pair_ratio(started(np.exp(rng.normal(0, 0.05, 4)).tolist()), seed=seed, resamples=20)
        inside += found.rho_ci.low <= 1.0 <= found.rho_ci.high
    assert inside >= 182, "95 % within what 200 draws allow"


def test_starts_must_fit_the_pairs_and_each_other():
    with pytest.raises(ValueError, match="3 pairs of 2 starts"):
        statistics.pair_ratio(statistics.PairedRatios(forward=[1.0] * 3, backward=[1.0] * 3, starts=[0, 1]), seed=0)
    with pytest.raises(ValueError, match="equally often"):
        statistics.geomean_pairs([started([1.0, 1.0]), started([1.0, 1.0, 1.0])], seed=0)
