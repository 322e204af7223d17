"""From hand-made calls to figures, flags and refusals: the report, the case clock and the pairs of an A/B."""

import json
from dataclasses import replace

import pytest

from evaluator.judge.comparison import CasePairs, StartPairs, shares
from evaluator.judge.outcome import Refusal
from evaluator.judge.report import audit, case_timing, evaluation, raw_trials, read_trials
from evaluator.judge.timing import CaseClock
from evaluator.judge.verdict import case_ratio
from evaluator.protocol.clock import Call
from evaluator.protocol.overhead import Overhead
from evaluator.protocol.quiet import Quiet
from evaluator.records import CaseCheck, Status
from evaluator.runner import layout
from evaluator.statistics import Agreement, CaseBlocks, geomean, geomean_speedup

OVERHEAD = 20.0


def call(event, wall=None):
    """A call whose two clocks agree unless the wall is given."""
    return Call(wall_us=round(event + OVERHEAD, 3) if wall is None else wall, event_us=event, code=layout.OK)


def clock(ref, cand, *, alone=(), again=(), case="one", overhead=None, voided=0):
    """Blocks of event times, or of calls."""

    def block(times):
        return [t if isinstance(t, Call) else call(t) for t in times]

    return CaseClock(
        case,
        overhead=overhead or Overhead(before=[OVERHEAD] * 5, interleaved=[OVERHEAD] * 3, bare=[15.0] * 5),
        quiet=Quiet(calibration=[5.0], voided=voided),
        before=block(alone),
        after=block(again),
        reference=[block(b) for b in ref],
        candidate=[block(b) for b in cand],
    )


def report(*clocks, reused=0):
    return evaluation(list(clocks), [CaseCheck(case=c.case, correct=True, seeds=3) for c in clocks], seed=7, reused_buffers=reused)


TWICE = ([[100.0, 102.0, 98.0], [100.0, 100.0, 104.0]], [[50.0, 49.0, 51.0], [50.0, 52.0, 50.0]])


def test_figures_of_one_case():
    timing = case_timing(clock(*TWICE, voided=2), seed=7)
    assert (timing.ref_us, timing.cand_us, timing.speedup) == (100.0, 50.0, 2.0)
    assert timing.speedup_bound == pytest.approx(100.0 / (50.0 + 5.0))
    assert timing.speedup_mean == pytest.approx((604 / 6) / (302 / 6))
    assert (timing.trials, timing.blocks, timing.voided) == (6, 2, 2)
    assert timing.speedup_ci.low <= 2.0 <= timing.speedup_ci.high
    assert (timing.audit.event_us, timing.audit.wall_us, timing.audit.overhead_us, timing.audit.slack_us) == (50.0, 70.0, 20.0, 5.0)
    assert timing.audit.agrees
    assert timing.ref_audit.event_us == 100.0


def test_the_faster_reference_counts():
    assert case_timing(clock(*TWICE, alone=[80.0, 80.0, 81.0]), seed=7).speedup == 80.0 / 50.0
    assert case_timing(clock(*TWICE, alone=[180.0]), seed=7).speedup == 2.0


def test_the_larger_clock_counts_for_a_trial():
    one = clock(*TWICE)
    assert one.trial_us([call(50.0, wall=100.0), call(50.0, wall=60.0), call(1.0, wall=5.0)]) == [80.0, 50.0, 1.0]
    assert one.wall_us([call(50.0, wall=100.0), call(1.0, wall=5.0)]) == [80.0, 0.0]


def test_a_slow_empty_call_beside_the_candidate_enlarges_nothing():
    slowed = Overhead(before=[20.0] * 5, interleaved=[90.0] * 5, bare=[15.0] * 5)
    assert slowed.overhead_us() == 20.0
    assert case_timing(clock(*TWICE, overhead=slowed), seed=7).cand_us == 50.0


def test_an_evaluation_over_two_cases():
    found = report(clock(*TWICE), clock([[90.0] * 4, [90.0] * 4], [[45.0] * 4, [45.0] * 4], case="two"), reused=3)
    assert found.speedup == pytest.approx(2.0)
    assert (found.fast1, found.fast1_raw, found.score) == (True, True, pytest.approx(2.0))
    assert found.speedup_bound == pytest.approx(geomean([100 / 55, 90 / 50]))
    assert found.flags == ("reused output buffer",)
    assert [c.case for c in found.checks] == ["one", "two"]
    assert sorted(found.trials) == ["one", "two"]


def test_the_reported_figures_come_again_from_the_kept_trials():
    odd = clock([[100.123, 101.457, 99.001], [100.999, 100.5]], [[50.111, 49.222, 51.003], [50.1, 52.007]], alone=[99.876, 100.2])
    found = report(odd)
    kept = json.loads(json.dumps(found.trials["one"]))
    overhead = Overhead(before=kept["overhead_before"], interleaved=kept["overhead_interleaved"], bare=kept["bare"])

    def times(blocks):
        return [[max(event, wall - overhead.overhead_us()) for event, wall in block] for block in blocks]

    blocks = CaseBlocks(ref=times(kept["ref"]), cand=times(kept["cand"]), alone_us=sum(t for t in times([kept["before"]])[0]) / 2)
    again = geomean_speedup([blocks], seed=kept["seed"])
    assert (again.value, again.interval) == (found.speedup, found.speedup_ci)


@pytest.mark.parametrize(
    ("cand", "flags", "fast", "score"),
    [
        ([[2.0] * 3, [2.0] * 3], ("over 10x",), True, 10.0),
        ([[99.0] * 3, [99.0] * 3], ("within slack",), False, 100 / 104),
        ([[50.0] * 3, [50.0] * 3], (), True, 2.0),
        ([[200.0] * 3, [200.0] * 3], (), False, 0.5),
    ],
)
def test_flags_and_scores(cand, flags, fast, score):
    found = report(clock([[100.0] * 3, [100.0] * 3], cand))
    assert found.flags == flags
    assert found.fast1 is fast
    assert found.score == pytest.approx(score)


def test_a_wide_interval_is_fast_raw_but_not_fast():
    found = report(clock([[100.0, 100.0], [100.0, 100.0], [100.0, 100.0]], [[50.0, 50.0], [200.0, 200.0], [90.0, 90.0]]))
    assert found.speedup_ci.low < 1.0 < found.speedup
    assert (found.fast1, found.fast1_raw) == (False, True)


def test_clocks_that_disagree_are_flagged_and_the_wall_decides():
    cand = [[call(50.0, wall=90.0)] * 3, [call(50.0, wall=90.0)] * 3]
    found = report(clock([[100.0] * 3, [100.0] * 3], cand))
    assert found.flags == ("clocks disagree on one: the wall decides",)
    assert found.timings[0].cand_us == 70.0
    assert found.timings[0].audit.agrees is False


def test_events_far_below_the_wall_are_tampered():
    cand = [[call(1.0, wall=90.0)] * 3] * 4
    with pytest.raises(Refusal, match="case one: the clocks disagree grossly in 4 of 4 blocks") as caught:
        report(clock([[100.0] * 3] * 4, cand))
    assert caught.value.status is Status.TAMPERED


def test_a_machine_that_interrupts_both_sides_makes_no_tampering():
    interrupted, plain = [call(100.0, wall=900.0)] * 3, [call(100.0)] * 3
    cand = [interrupted, interrupted, interrupted, plain]
    found = report(clock([interrupted, interrupted, plain, plain], cand))
    assert found.flags == ("clocks disagree on one: the wall decides",)
    assert found.timings[0].cand_us == 880.0
    with pytest.raises(Refusal, match="grossly"):
        report(clock([interrupted, plain, plain, plain], cand))


def test_events_far_above_the_wall_only_hurt_the_candidate():
    found = report(clock([[100.0] * 3] * 4, [[call(500.0, wall=70.0)] * 3] * 4))
    assert found.timings[0].cand_us == 500.0
    assert found.flags == ("clocks disagree on one: the wall decides",)


def test_what_the_reference_shows_too_is_not_held_against_the_candidate():
    """Where the trusted runner's own clocks lie 30 us apart, a candidate's may too."""
    ref = [[call(100.0, wall=150.0)] * 3] * 4
    cand = [[call(50.0, wall=100.0)] * 3] * 4
    ruling = audit(clock(ref, cand), clock(ref, cand).candidate)
    assert ruling.agreement is Agreement.AGREES


def test_a_time_of_nothing_is_kept_above_zero():
    found = report(clock([[100.0] * 3] * 2, [[call(0.0, wall=20.0)] * 3] * 2))
    assert found.timings[0].cand_us == 1e-3
    assert found.score == 10.0
    assert "over 10x" in found.flags


def test_one_block_gives_no_interval():
    with pytest.raises(ValueError, match="at least two"):
        report(clock([[100.0] * 3], [[50.0] * 3]))


def test_a_fresh_clock_keeps_the_calibration_alone():
    used = clock(*TWICE, alone=[100.0], voided=3)
    used.quiet.pairs, used.quiet.after_candidate = 9, 3
    fresh = used.fresh()
    assert (fresh.case, fresh.before, fresh.overhead.before, fresh.overhead.bare) == ("one", used.before, [20.0] * 5, [15.0] * 5)
    assert (fresh.reference, fresh.candidate, fresh.overhead.interleaved) == ([], [], [])
    assert (fresh.quiet.calibration, fresh.quiet.pairs, fresh.quiet.voided, fresh.quiet.after_candidate) == ([5.0], 0, 0, 0)
    fresh.reference.append([call(1.0)])
    fresh.overhead.interleaved.append(1.0)
    assert len(used.reference) == 2
    assert used.overhead.interleaved == [20.0] * 3


def test_a_clock_without_calibration_has_no_figure_alone():
    assert clock(*TWICE).alone_us() is None
    assert clock(*TWICE, alone=[90.0, 100.0]).alone_us() == 95.0
    assert clock(*TWICE).slowed() == 1.0


def test_a_reference_slowed_by_the_candidate_counts_as_fast_as_alone_and_is_named():
    """Alone it is as fast afterwards as before: what slowed it was the candidate, or went with it."""
    slowed = report(clock([[140.0] * 4, [140.0] * 4], [[50.0] * 4, [50.0] * 4], alone=[100.0] * 3, again=[101.0] * 3))
    assert slowed.speedup == 101.0 / 50.0
    assert slowed.flags[-1] == "case one: the reference took 1.39 times as long beside the candidate as alone: alone counts"


def test_a_machine_that_became_slower_for_good_is_nobodys_gain_or_loss():
    drifted = report(clock([[140.0] * 4, [140.0] * 4], [[70.0] * 4, [70.0] * 4], alone=[100.0] * 3, again=[141.0] * 3))
    assert drifted.speedup == 2.0
    assert not [flag for flag in drifted.flags if "beside the candidate" in flag]


def test_a_clock_is_read_back_from_its_trials_and_gives_the_same_figures():
    used = clock([[100.5, 101.25], [99.0, 100.0, 98.5]], [[50.0, 51.5], [49.5]], alone=[97.0], again=[98.0])
    again = read_trials("one", raw_trials(used, 7))
    assert (again.reference, again.candidate, again.before, again.after) == (used.reference, used.candidate, used.before, used.after)
    assert replace(case_timing(again, seed=7), voided=0) == replace(case_timing(used, seed=7), voided=0)


def pairs(candidate, champion, *, slot_bias=1.0, count=6, overhead=OVERHEAD):
    """Identical pairs in which whatever runs first takes `slot_bias` times as long."""
    forward = [(call(candidate * slot_bias), call(champion))] * count
    backward = [(call(candidate), call(champion * slot_bias))] * count
    return CasePairs("one", overhead=Overhead(before=[overhead] * 5), starts=[StartPairs(forward=forward, backward=backward)])


def test_rho_is_free_of_slot_bias():
    ratio = case_ratio(pairs(80.0, 100.0, slot_bias=1.25), floor=0.02, seed=3)
    assert ratio.rho == pytest.approx(0.8)
    assert ratio.slot_bias == pytest.approx(1.25)
    assert (ratio.pairs, ratio.floor) == (6, 0.02)
    assert ratio.forward == pytest.approx([1.0] * 6)
    assert ratio.backward == pytest.approx([1.25 * 1.25] * 6)


def test_the_wall_is_taken_without_the_overhead():
    ratio = case_ratio(pairs(80.0, 100.0), floor=0.0, seed=3)
    assert ratio.rho_wall == pytest.approx(0.8)
    assert (ratio.candidate_us, ratio.champion_us) == (80.0, 100.0)


def test_a_wall_below_the_overhead_makes_no_ratio_of_nothing():
    short = pairs(1.0, 100.0, overhead=50.0)
    assert short.by_wall().forward == pytest.approx([1e-3 / 70.0] * 6)
    assert short.by_events().forward == pytest.approx([0.01] * 6)


def test_swapping_the_sides_inverts_rho():
    one, other = case_ratio(pairs(80.0, 100.0), floor=0.0, seed=3), case_ratio(pairs(100.0, 80.0), floor=0.0, seed=3)
    assert one.rho * other.rho == pytest.approx(1.0)


def test_spread_is_the_champions():
    mixed = pairs(80.0, 100.0)
    mixed.starts[0].forward = [(call(80.0), call(90.0)), (call(80.0), call(110.0))]
    mixed.starts[0].backward = [(call(80.0), call(90.0)), (call(80.0), call(110.0))]
    assert mixed.spread() == pytest.approx(0.2)


def test_the_slack_holds_the_loop_and_a_dispatch_beyond_a_bare_wake():
    overhead = Overhead(before=[20.0] * 5, bare=[15.0] * 5, dispatch=[30.0, 32.0, 90.0], reach=[])
    assert (overhead.overhead_us(), overhead.slack_us()) == (20.0, 17.0)
    assert Overhead(before=[20.0] * 5, bare=[15.0] * 5, dispatch=[10.0] * 3).slack_us() == 5.0, "never less than what is subtracted"
    assert Overhead(before=[20.0] * 5, bare=[25.0] * 5).slack_us() == 0.0


def test_the_champion_is_slowed_by_the_mean_over_starts_of_the_better_of_before_and_after():
    def start(beside, before, after):
        return StartPairs(
            forward=[(call(50.0), call(beside))], backward=[(call(50.0), call(beside))], before=[call(before)], after=[call(after)]
        )

    walls = [call(t).wall_us for t in (120.0, 100.0, 90.0, 110.0)]
    case = CasePairs("one", starts=[start(120.0, 90.0, 100.0), start(120.0, 110.0, 90.0)])
    assert case.slowed() == pytest.approx((walls[0] / walls[1] * walls[0] / walls[3]) ** 0.5)


def test_the_slack_of_a_case_is_a_factor_on_the_candidates_time():
    case = pairs(80.0, 100.0)
    case.overhead.bare = [case.overhead.overhead_us() - 4.0] * 5
    assert case.slack() == pytest.approx(1 + 4.0 / 80.0)
    assert case_ratio(case, floor=0.02, seed=3).slack_us == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("pairs", "expected"), [(1, [1]), (2, [2]), (3, [3]), (4, [2, 2]), (7, [3, 2, 2]), (8, [2] * 4), (20, [5] * 4), (30, [8, 8, 7, 7])]
)
def test_pairs_are_shared_among_starts_with_two_at_least(pairs, expected):
    assert shares(pairs) == expected
