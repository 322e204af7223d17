"""Evaluations, A/B verdicts and floors with real clocks: figures are recomputed, and only gross differences decide."""

import math

import numpy as np
import pytest
from judge_samples import MeasuringJudge, cache_directory, scan_model, write_module

from evaluator.judge.report import case_blocks, read_trials
from evaluator.records import Decision, Status
from evaluator.statistics import PairedRatios, geomean, geomean_pairs, geomean_speedup, mean_speedup, pair_ratio, speedup

pytestmark = pytest.mark.exclusive
SHORT = ("short",)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return MeasuringJudge(cache_directory(tmp_path_factory), "builtin:scan")


@pytest.fixture(scope="module")
def honest(judge):
    """One evaluation of an honest kernel on both cases of the scan."""
    result = judge("evaluate", scan_model(), trials=12, seeds=1)
    assert result.status is Status.OK, (result.message, result.log)
    return result


def test_an_honest_kernel_is_measured_on_every_case(honest):
    report = honest.evaluation
    assert report.correct
    assert [c.case for c in report.checks] == [t.case for t in report.timings] == ["short", "long"]
    for timing in report.timings:
        assert timing.trials >= 12
        assert timing.blocks >= 2
        assert 0 < timing.cand_us < 1e6
        assert timing.speedup_ci.low <= timing.speedup <= timing.speedup_ci.high
        assert timing.speedup_bound <= timing.speedup
        assert timing.audit.event_us > 0
        assert timing.audit.wall_us > timing.audit.overhead_us > 0
        assert timing.ref_audit.overhead_us == timing.audit.overhead_us
    assert report.fast1 is (report.speedup_ci.low >= 1)
    assert report.fast1_raw is (report.speedup >= 1)
    assert report.score == min(10.0, report.speedup)
    assert honest.device_s > 0
    assert honest.problem == "builtin:scan"


def test_a_bench_is_short_and_says_that_nothing_is_decided_by_it(judge):
    result = judge("bench", scan_model(), cases=("short",))
    assert result.status is Status.OK, (result.message, result.log)
    assert [(c.case, c.seeds) for c in result.evaluation.checks] == [("short", 1)]
    assert 20 <= result.evaluation.timings[0].trials < 60
    assert result.evaluation.flags[-1] == "bench only: few trials, and nothing is decided by them"


def test_every_reported_figure_comes_again_from_the_kept_trials(honest):
    report = honest.evaluation
    cases = []
    for timing in report.timings:
        trials = report.trials[timing.case]
        clock = read_trials(timing.case, trials)
        blocks, overhead = case_blocks(clock), clock.overhead
        cases.append(blocks)
        again = speedup(blocks, seed=trials["seed"])
        assert (again.value, again.interval) == (timing.speedup, timing.speedup_ci)
        assert mean_speedup(blocks) == timing.speedup_mean
        assert (overhead.overhead_us(), overhead.slack_us()) == (timing.audit.overhead_us, timing.audit.slack_us)
        assert timing.cand_us == float(np.median([t for block in blocks.cand for t in block]))
        assert timing.ref_us == min(float(np.median([t for block in blocks.ref for t in block])), blocks.alone_us)
        assert timing.speedup_bound == timing.ref_us / (timing.cand_us + overhead.slack_us())
    seed = report.trials["short"]["seed"]
    whole = geomean_speedup(cases, seed=seed)
    assert (whole.value, whole.interval) == (report.speedup, report.speedup_ci)
    assert report.speedup_bound == geomean([t.speedup_bound for t in report.timings])


def test_an_ab_against_the_reference_keeps_what_it_decided_on(judge):
    """Ten times the work of an honest kernel is slower than anything the floor allows."""
    result = judge("ab", scan_model(10), cases=SHORT, pairs=8, floor={"geomean": 0.3, "cases": {"short": 0.25}})
    assert result.status is Status.OK, (result.message, result.log)
    verdict = result.verdict
    assert verdict.decision is Decision.SLOWER, verdict.reason
    assert (verdict.champion_sha256, verdict.candidate_sha256, verdict.floor) == (None, result.source_sha256, 0.3)
    (case,) = verdict.cases
    assert (case.case, case.pairs, len(case.forward), len(case.backward), case.floor) == ("short", 8, 8, 8, 0.25)
    assert verdict.rho == case.rho > 1.3
    assert case.candidate_us > case.champion_us > 0
    assert verdict.outputs_verified > 0
    ratios = PairedRatios(forward=case.forward, backward=case.backward, starts=case.starts)
    assert [case.starts.count(start) for start in range(4)] == [2, 2, 2, 2]
    assert (case.slack_us > 0, verdict.slack) == (True, pytest.approx(1 + case.slack_us / case.candidate_us))
    assert pair_ratio(ratios, seed=0).rho == case.rho == geomean_pairs([ratios], seed=0).rho


@pytest.mark.slow
def test_a_candidate_against_itself_is_unresolved(judge):
    result = judge("ab", scan_model(), champion=scan_model(), cases=SHORT, floor={"geomean": 0.05})
    assert result.status is Status.OK, (result.message, result.log)
    assert result.verdict.decision is Decision.UNRESOLVED, result.verdict.reason
    assert result.verdict.champion_sha256 == result.verdict.candidate_sha256
    assert result.verdict.cases[0].pairs == 20


@pytest.mark.slow
def test_a_slower_champion_is_beaten_and_the_floor_is_measured_where_none_is_given(judge):
    result = judge("ab", scan_model(), champion=scan_model(10), cases=SHORT, pairs=10)
    assert result.status is Status.OK, (result.message, result.log)
    verdict = result.verdict
    assert verdict.rho < 0.5
    assert verdict.floor >= 0
    disturbed = "not to be told from what the champion lost" in verdict.reason  # a busy machine: it did not run as it does alone
    assert verdict.decision is (Decision.UNRESOLVED if disturbed else Decision.FASTER), verdict.reason
    assert disturbed or "faster on both clocks" in verdict.reason


@pytest.mark.slow
def test_a_floor_is_measured_with_a_champion_and_without(judge):
    for champion in (None, scan_model()):
        result = judge("floor", champion=champion, cases=SHORT, pairs=8)
        assert result.status is Status.OK, (result.message, result.log)
        (case,) = result.floor.cases
        assert (case.case, case.pairs) == ("short", 8)
        assert case.rho_ci.low <= case.rho <= case.rho_ci.high
        assert case.floor == max(case.rho_ci.high - 1, 1 - case.rho_ci.low, 0)
        assert math.isfinite(case.spread)
        assert (result.floor.source_sha256 is None) == (champion is None)


@pytest.mark.slow
def test_a_champion_that_does_not_build_is_not_the_candidates_fault(judge):
    broken = scan_model().replace("import torch\n", "import torch\nimport nowhere_to_be_found\n", 1)
    result = judge("ab", scan_model(), champion=broken, cases=SHORT, floor={"geomean": 0.05})
    assert result.status is Status.EVALUATOR_ERROR
    assert result.message.startswith("the champion no longer builds")


@pytest.mark.slow
def test_the_reference_is_timed_eagerly_and_compiled(judge, tmp_path):
    result = judge("baseline", problem=str(write_module(tmp_path)), trials=8)
    assert result.status is Status.OK, (result.message, result.log)
    (case,) = result.baseline.cases
    assert (case.case, case.trials) == ("default", 8)
    assert result.baseline.eager_us == pytest.approx(case.eager_us)
    assert (case.compiled_us is None) == (result.message != "")
    assert result.baseline.compiled_us == (None if case.compiled_us is None else pytest.approx(case.compiled_us))


@pytest.mark.slow
def test_a_quick_qualification_runs_its_controls_and_names_the_failed_ones(judge):
    result = judge("qualify", problem="builtin:gemm_epilogue", quick=True)
    assert result.status is Status.OK, (result.message, result.log)
    report = result.qualification
    assert report.quick
    assert len({o.control for o in report.controls}) >= 5
    assert {o.gate for o in report.controls} == {True, False}
    failed = [o for o in report.controls if not o.passed]
    assert report.qualified is (failed == []), result.message
    assert failed == [], result.message
