"""Rung 3: the symmetric A/B of a candidate against the champion, and the floor it must clear.

The floor is what identical sources differ by on this device: measured by an A/A (`floor`), handed
in by the job, or measured here first where the job has none.
Not for: deciding a promotion.
"""

from __future__ import annotations

from evaluator.judge.candidate import Prepared, prepare_champion, prepare_source
from evaluator.judge.comparison import CasePairs, measure, shares
from evaluator.judge.runner import Runner
from evaluator.judge.setting import Setting
from evaluator.judge.trial import Bench
from evaluator.protocol import blocks
from evaluator.records import CaseRatio, Floor, FloorCase, Verdict
from evaluator.statistics import decide, geomean, geomean_pairs, noise_floor, pair_ratio

PAIRS = 20


def compare(setting: Setting) -> Verdict:
    """Symmetric A/B of the job's candidate against its champion (None: the reference)."""
    job = setting.job
    assert job.candidate is not None
    starts = len(shares(_pairs(setting)))
    known = dict(job.options.get("floor") or {})
    sides = 2 if known else 4  # candidate and champion, and both sides of an A/A
    setting.spares().expect(1 + sides * starts)
    setting.start_trusted()
    setting.reference()
    prepared = prepare_source(setting, job.candidate)
    champion = prepare_champion(setting)
    bench = setting.bench()
    floor = None if known else measure_floor(setting, bench, champion)
    cases_floor = {c.case: c.floor for c in floor.cases} if floor else dict(known.get("cases", {}))
    overall_floor = floor.floor if floor else float(known["geomean"])
    measured = measure(
        setting,
        bench,
        candidate=lambda: setting.candidate_runner(prepared.build, prepared.source, name="candidate"),
        champion=lambda: _champion_runner(setting, champion, "champion"),
        reference=setting.reference(),
        pairs=_pairs(setting),
        alone=True,
    )
    seed = blocks.seed()
    events = geomean_pairs([m.by_events() for m in measured], seed=seed)
    wall = geomean_pairs([m.by_wall() for m in measured], seed=seed)
    slowed = geomean([m.slowed() for m in measured])
    slack = geomean([m.slack() for m in measured])
    decision, reason = decide(
        rho=events.rho,
        rho_ci=events.rho_ci,
        rho_wall=wall.rho,
        rho_wall_ci=wall.rho_ci,
        floor=overall_floor,
        slowed=slowed,
        slack=slack,
    )
    return Verdict(
        decision=decision,
        reason=reason,
        rho=events.rho,
        rho_ci=events.rho_ci,
        rho_wall=wall.rho,
        rho_wall_ci=wall.rho_ci,
        floor=overall_floor,
        cases=tuple(case_ratio(m, floor=cases_floor.get(m.case, overall_floor), seed=seed) for m in measured),
        champion_sha256=job.champion.sha256 if job.champion else None,
        candidate_sha256=job.candidate.sha256,
        outputs_verified=bench.verified,
        slowed=slowed,
        slack=slack,
    )


def floor(setting: Setting) -> Floor:
    """A/A of the job's champion (None: the reference) in two processes."""
    setting.spares().expect(1 + 2 * len(shares(_pairs(setting))))
    setting.start_trusted()
    setting.reference()
    champion = prepare_champion(setting)
    return measure_floor(setting, setting.bench(), champion)


def measure_floor(setting: Setting, bench: Bench, champion: Prepared | None) -> Floor:
    """The floor per case and of the geometric mean."""
    measured = measure(
        setting,
        bench,
        candidate=lambda: _champion_runner(setting, champion, "one"),
        champion=lambda: _champion_runner(setting, champion, "two"),
        reference=setting.reference(),
        pairs=_pairs(setting),
        alone=False,
    )
    seed = blocks.seed()
    overall = geomean_pairs([m.by_events() for m in measured], seed=seed)
    job = setting.job
    return Floor(
        floor=noise_floor(overall.rho_ci),
        cases=tuple(_floor_case(m, seed) for m in measured),
        source_sha256=job.champion.sha256 if job.champion else None,
    )


def case_ratio(pairs: CasePairs, *, floor: float, seed: int) -> CaseRatio:
    """Figures of one case of an A/B."""
    ratios = pairs.by_events()
    events, wall = pair_ratio(ratios, seed=seed), pair_ratio(pairs.by_wall(), seed=seed)
    candidate_us, champion_us = pairs.medians_us()
    return CaseRatio(
        case=pairs.case,
        rho=events.rho,
        rho_ci=events.rho_ci,
        rho_wall=wall.rho,
        rho_wall_ci=wall.rho_ci,
        slot_bias=events.slot_bias,
        floor=floor,
        pairs=events.pairs,
        forward=tuple(ratios.forward),
        backward=tuple(ratios.backward),
        starts=tuple(ratios.starts),
        champion_us=champion_us,
        candidate_us=candidate_us,
        slack_us=pairs.overhead.slack_us(),
    )


def _floor_case(pairs: CasePairs, seed: int) -> FloorCase:
    ratio = case_ratio(pairs, floor=0.0, seed=seed)
    return FloorCase(
        case=pairs.case,
        floor=noise_floor(ratio.rho_ci),
        rho=ratio.rho,
        rho_ci=ratio.rho_ci,
        rho_wall=ratio.rho_wall,
        rho_wall_ci=ratio.rho_wall_ci,
        slot_bias=ratio.slot_bias,
        pairs=ratio.pairs,
        spread=pairs.spread(),
    )


def _champion_runner(setting: Setting, champion: Prepared | None, name: str) -> Runner:
    if champion is None:
        return setting.reference_runner(name=name)
    return setting.candidate_runner(champion.build, champion.source, name=name, charged=False)


def _pairs(setting: Setting) -> int:
    return max(2, int(setting.job.options.get("pairs", PAIRS)))
