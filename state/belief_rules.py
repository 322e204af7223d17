"""What results do to beliefs, by rule.

A claim is tested by the experiments that cite it. One whose measurement lies outside an assertion
contradicts the claim; contradicted by two independent experiments, the claim falls below 0.5.
Experiments are independent when they share neither idea nor stack parts. Claims held at 0.7 or more
that are contradicted, and buried claims that a result speaks for, are the red team's.
Invariant: pure over the document and facts; only ever lowers a confidence.
Not for: changes that a model or a person asks for (`state.belief_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from state.claims import GEOMEAN, Assertion, Claim
from state.events import ClaimChange
from state.model import Experiment, RunState
from state.reconciliation import Measured
from state.world_model import Section, WorldModel

REFUTED_BELOW = 0.5
"""A refuted claim's confidence is below this."""

DEMOTED = 0.45
"""Where a refuted claim falls to when it was held higher."""

RED_TEAM_FROM = 0.7
"""A contradicted claim held at least this firmly is audited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one reconciled experiment measured, and which claims it rested on."""

    experiment: str
    claims: frozenset[str]
    measured: Mapping[str, Measured] = field(default_factory=dict)
    """Speed-up over the champion by case; `geomean` where an A/B gave it."""
    roots: frozenset[str] = frozenset()
    """What it shares with others: its idea and its stack parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One assertion beside one measurement."""

    claim: Claim
    experiment: str
    assertion: Assertion
    measured: Measured

    @property
    def needs_red_team(self) -> bool:
        """Whether the claim was held firmly enough for an audit."""
        return self.claim.confidence >= RED_TEAM_FROM

    def __str__(self) -> str:
        return f"{self.experiment} measured {self.measured.ratio:.3g} where {self.claim.id} asserts {self.assertion}"


def facts_of(state: RunState) -> list[Facts]:
    """The facts of every reconciled experiment of a run."""
    return [_facts(e) for e in state.experiments.values() if e.stage == "reconciled"]


def contradictions(model: WorldModel, results: Iterable[Facts]) -> list[Finding]:
    """Held claims whose citing experiments measured something else; those already listed as `against` are left out."""
    return [
        finding
        for facts in results
        for claim in model.claims
        if claim.id in facts.claims and facts.experiment not in claim.against
        for finding in _tests(claim, facts)
        if _contradicts(finding)
    ]


def reopenable(model: WorldModel, results: Iterable[Facts]) -> list[Finding]:
    """Buried claims whose citing experiments measured what they assert, on evidence they do not have yet."""
    return [
        finding
        for facts in results
        for claim in model.graveyard
        if claim.id in facts.claims and facts.experiment not in (*claim.evidence, *claim.against)
        for finding in _tests(claim, facts)
        if not _contradicts(finding)
    ]


def refuted(against: Collection[str], roots: Mapping[str, frozenset[str]]) -> bool:
    """Whether two of these experiments are independent; one without roots shares nothing with another."""
    return any(not _lineage(a, roots) & _lineage(b, roots) for a, b in combinations(sorted(set(against)), 2))


def demote(model: WorldModel, results: Collection[Facts]) -> tuple[WorldModel, list[ClaimChange]]:
    """Note every new contradiction on its claim, and lower the claims that are refuted by it."""
    found: dict[str, list[str]] = {}
    for finding in contradictions(model, results):
        names = found.setdefault(finding.claim.id, [])
        names += [finding.experiment] if finding.experiment not in names else []
    changes: list[ClaimChange] = []
    roots = roots_of(results)

    def lower(claim: Claim) -> Claim:
        return _lower(claim, found[claim.id], roots, changes) if claim.id in found else claim

    return map_claims(model, lower), changes


def roots_of(results: Iterable[Facts]) -> dict[str, frozenset[str]]:
    """What each experiment shares with others, for `refuted`."""
    return {facts.experiment: facts.roots for facts in results}


def map_claims(model: WorldModel, change: Callable[[Claim], Claim]) -> WorldModel:
    """The document with every claim, held or buried, passed through `change`."""

    def section(old: Section) -> Section:
        return replace(old, items=tuple(change(item) if isinstance(item, Claim) else item for item in old.items))

    return WorldModel(sections=tuple(section(s) for s in model.sections))


def _facts(experiment: Experiment) -> Facts:
    measured = {
        c.case: Measured(ratio=c.measured, low=c.measured_low, high=c.measured_high)
        for c in experiment.reconciliation
        if c.measured is not None
    }
    verdict = experiment.verdict
    if verdict is not None and verdict.rho and verdict.rho_low and verdict.rho_high:
        measured[GEOMEAN] = Measured(ratio=1 / verdict.rho, low=1 / verdict.rho_high, high=1 / verdict.rho_low)
    roots = {f"idea {experiment.idea}"} if experiment.idea else set()
    return Facts(
        experiment=experiment.id,
        claims=frozenset(experiment.claims),
        measured=measured,
        roots=frozenset(roots | set(experiment.parts)),
    )


def _tests(claim: Claim, facts: Facts) -> Iterator[Finding]:
    for assertion in claim.assertions:
        measured = facts.measured.get(assertion.case)
        if assertion.metric == "speedup" and measured is not None:
            yield Finding(claim=claim, experiment=facts.experiment, assertion=assertion, measured=measured)


def _contradicts(finding: Finding) -> bool:
    m = finding.measured
    return finding.assertion.contradicted_by(m.ratio, low=m.low, high=m.high)


def _lineage(name: str, roots: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return roots.get(name, frozenset()) | {name}


def _lower(claim: Claim, experiments: list[str], roots: Mapping[str, frozenset[str]], changes: list[ClaimChange]) -> Claim:
    against = (*claim.against, *experiments)
    after = claim.confidence
    why = f"contradicted by {', '.join(experiments)}"
    if refuted(against, roots) and after >= REFUTED_BELOW:
        after = DEMOTED
        why += "; two independent experiments contradict it, so it falls below 0.5 by rule"
    changes.append(ClaimChange(claim=claim.id, before=claim.confidence, after=after, why=why, evidence=experiments))
    return replace(claim, confidence=after, against=against, source=())
