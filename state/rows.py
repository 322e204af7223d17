"""The rows of the projection: what lists and filters show, and how they follow from the state.

Invariant: pure functions of state and record, so a rebuilt projection equals the live one.
Not for: SQL (`state.schema`, `state.store`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from state.claims import Claim
from state.errors import WorldModelError
from state.events import Record
from state.model import Experiment, RunState
from state.world_model import parse

HEADLINE_CHARS = 300

HEADLINES: dict[str, tuple[str, ...]] = {
    "run.created": ("title", "problem"),
    "run.resumed": ("voided",),
    "run.control": ("action", "reason"),
    "run.state": ("state", "reason"),
    "job.started": ("request", "kind", "purpose"),
    "job.finished": ("request", "result.kind", "result.status", "result.verdict.decision", "result.message"),
    "job.voided": ("request", "why"),
    "agent.started": ("agent", "task"),
    "agent.reply": ("agent", "text"),
    "agent.result": ("agent", "name", "call"),
    "agent.finished": ("agent", "outcome", "detail"),
    "idea.proposed": ("idea", "title"),
    "experiment.opened": ("experiment", "title"),
    "candidate.submitted": ("experiment", "sha256", "note"),
    "experiment.reported": ("experiment", "conclusion"),
    "experiment.reconciled": ("experiment", "hypothesis", "explanation"),
    "world_model.edited": ("why", "sha256"),
    "experiment.banked": ("experiment", "rho"),
    "gate.decided": ("experiment", "gate", "reason"),
    "promotion": ("number", "experiment", "speedup"),
    "nudge.queued": ("nudge", "text"),
    "nudge.delivered": ("nudge",),
    "nudge.acknowledged": ("nudge",),
    "note": ("level", "text"),
}
"""Which fields of a record its headline shows."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    run: str
    title: str
    problem: str
    device: str
    model: str
    gate: str
    status: str
    requested: str | None
    started_ts: str
    last_ts: str
    seq: int
    """Of the last record projected."""
    hash: str
    """Of that record."""
    baseline_us: float | None
    champion: str | None
    champion_us: float | None
    speedup: float
    promotions: int
    experiments: int
    banked: int
    in_flight: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    device_s: float


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """One record in a list; the record itself is in the journal."""

    seq: int
    ts: str
    kind: str
    actor: str
    experiment: str | None
    headline: str


class ExperimentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment in a list."""

    id: str
    title: str
    idea: str
    worker: str
    status: str
    """One word, see `status_of`."""
    stage: str
    rung: int
    correctness: str
    performance: str
    hypothesis: str
    retention: str
    speedup: float | None
    rho: float | None
    rho_low: float | None
    rho_high: float | None
    surprise: float | None
    final: str | None
    conclusion: str
    opened_seq: int
    last_seq: int


class PromotionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One promotion."""

    number: int
    experiment: str
    sha256: str
    previous: str | None
    rho: float
    speedup: float
    champion_us: float
    seq: int
    ts: str


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the judge."""

    request: str
    kind: str
    experiment: str | None
    purpose: str
    status: str
    """`in flight`, `void`, or the result's status."""
    started_seq: int | None
    finished_seq: int | None
    voided: int


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of the current world model."""

    claim: str
    sentence: str
    confidence: float
    buried: bool
    evidence: str
    against: str
    place: int
    """Order in the document."""


def run_row(state: RunState, *, run: str, seq: int, digest: str) -> RunRow:
    """The run as its state says, projected up to record `seq`."""
    return RunRow(
        run=run,
        seq=seq,
        hash=digest,
        promotions=len(state.promotions),
        experiments=len(state.experiments),
        banked=len(state.bank),
        in_flight=len(state.in_flight),
        **{name: getattr(state, name) for name in _COPIED_RUN},
    )


def experiment_row(experiment: Experiment) -> ExperimentRow:
    """One experiment as its state says."""
    evaluation, verdict = experiment.evaluation, experiment.verdict
    return ExperimentRow(
        status=status_of(experiment),
        speedup=evaluation.speedup if evaluation else None,
        rho=verdict.rho if verdict else None,
        rho_low=verdict.rho_low if verdict else None,
        rho_high=verdict.rho_high if verdict else None,
        **{name: getattr(experiment, name) for name in _COPIED_EXPERIMENT},
    )


def status_of(experiment: Experiment) -> str:
    """The one word of a list: the retention if there is one, else what refused it, else its stage."""
    if experiment.retention != "none":
        return experiment.retention
    if experiment.correctness not in ("untested", "correct"):
        return experiment.correctness
    return experiment.stage


def experiment_text(experiment: Experiment) -> str:
    """What a text filter looks at."""
    parts = (experiment.id, experiment.title, experiment.conclusion, experiment.explanation, experiment.gate_reason)
    return "\n".join(part for part in parts if part)


def event_row(record: Record, state: RunState) -> EventRow:
    """One record for a list; its experiment is named by its data or by the agent it is about."""
    name = record.data.get("experiment")
    if not isinstance(name, str):
        agent = state.agents.get(str(record.data.get("agent", "")))
        # Only an agent that was started by then: a later batch must not see more than an earlier one did.
        name = agent.experiment if agent is not None and agent.started_seq <= record.seq else None
    return EventRow(seq=record.seq, ts=record.ts, kind=record.kind, actor=record.actor, experiment=name, headline=headline(record))


def headline(record: Record) -> str:
    """One line that says what the record is about; unsanitised text, like all that is stored."""
    values = [_dig(record.data, path) for path in HEADLINES.get(record.kind, ())]
    words = " · ".join(str(value)[: 2 * HEADLINE_CHARS] for value in values if value not in (None, "", []))
    return " ".join(words.split())[:HEADLINE_CHARS]


def claim_rows(state: RunState) -> list[ClaimRow]:
    """The claims of the current document; none while it does not parse."""
    try:
        model = parse(state.world_model_text)
    except WorldModelError:
        return []
    held = [_claim_row(claim, place, buried=False) for place, claim in enumerate(model.claims)]
    return held + [_claim_row(claim, len(held) + place, buried=True) for place, claim in enumerate(model.graveyard)]


def _claim_row(claim: Claim, place: int, *, buried: bool) -> ClaimRow:
    return ClaimRow(
        claim=claim.id,
        sentence=claim.sentence,
        confidence=claim.confidence,
        buried=buried,
        evidence=", ".join(claim.evidence),
        against=", ".join(claim.against),
        place=place,
    )


def _dig(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


_COPIED_RUN = [
    name for name in RunRow.__struct_fields__ if name not in ("run", "seq", "hash", "promotions", "experiments", "banked", "in_flight")
]
_COPIED_EXPERIMENT = [name for name in ExperimentRow.__struct_fields__ if name not in ("status", "speedup", "rho", "rho_low", "rho_high")]
