"""What a run is at one moment: the state that `state.reducer` folds from its journal.

Plain mutable structs that msgspec can send as JSON: the daemon's snapshot, the live console and a
replay hold the very same type, and two states are equal when they are equal as data.
Invariant: everything here is derived from records alone; no clock, no file, no process.
Not for: deciding anything, or for gauges (those are not journalled).
"""

from __future__ import annotations

from typing import Any

import msgspec

from state.events import Belief, CaseReconciliation, ClaimChange, GateCheck


class Outcome(msgspec.Struct, kw_only=True):
    """What one finished job said, as far as lists and screens need it."""

    request: str
    kind: str
    status: str
    message: str = ""
    sha256: str | None = None
    speedup: float | None = None
    """Over the reference, geometric mean."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    cand_us: float | None = None
    """Geometric mean over cases."""
    ref_us: float | None = None
    flags: list[str] = []
    claimed_speedup: float | None = None
    """What a naive evaluator would have credited."""
    claimed_correct: bool | None = None
    decision: str | None = None
    """Of an A/B."""
    reason: str = ""
    rho: float | None = None
    rho_low: float | None = None
    rho_high: float | None = None
    rho_wall: float | None = None
    rho_wall_low: float | None = None
    rho_wall_high: float | None = None
    floor: float | None = None
    slot_bias: float | None = None
    passed: bool | None = None
    """Of a robustness job."""
    seq: int = 0
    """Of the `job.finished` record, where everything else of it is found."""


class Experiment(msgspec.Struct, kw_only=True):
    """One idea carried out by one worker."""

    id: str
    title: str
    idea: str
    base: str | None
    champion: str | None
    prediction: list[Belief]
    prediction_sha256: str
    claims: list[str] = []
    """Claims of the world model it was predicted from."""
    parts: list[str] = []
    """Experiments that a stack combines."""
    worker: str = ""
    candidates: list[str] = []
    """sha256 in order of submission."""
    final: str | None = None
    stage: str = "open"
    """`open`, `building`, `measuring`, `reported`, `reconciled`."""
    rung: int = 0
    """Highest rung of the ladder reached: 0 none, 1 single evaluation, 3 symmetric A/B."""
    check: Outcome | None = None
    evaluation: Outcome | None = None
    robustness: Outcome | None = None
    verdict: Outcome | None = None
    """The latest of each kind."""
    conclusion: str = ""
    report: str = ""
    reconciliation: list[CaseReconciliation] = []
    surprise: float | None = None
    explanation: str = ""
    claim_changes: list[ClaimChange] = []
    correctness: str = "untested"
    """`untested`, `correct`, `incorrect`, or the status that refused it."""
    performance: str = "untested"
    """`untested`, `faster`, `slower`, `unresolved`."""
    hypothesis: str = "untested"
    """`untested`, `confirmed`, `refuted`."""
    retention: str = "none"
    """`none`, `banked`, `promoted`, `refused`."""
    gate_checks: list[GateCheck] = []
    gate_reason: str = ""
    not_checked: list[str] = []
    opened_seq: int = 0
    last_seq: int = 0


class Promotion(msgspec.Struct, kw_only=True):
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
    not_checked: list[str] = []


class Idea(msgspec.Struct, kw_only=True):
    """One proposal of an idea agent."""

    id: str
    title: str
    category: str
    rationale: str
    beliefs: list[Belief]
    actor: str
    seq: int
    experiments: list[str] = []


class Agent(msgspec.Struct, kw_only=True):
    """One model conversation."""

    id: str
    role: str
    task: str
    context: str
    model: str
    state: str = "working"
    """`working`, `done`, `failed`, `stopped`."""
    turns: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    """None once any reply's count is unknown."""
    last_words: str = ""
    experiment: str | None = None
    started_seq: int = 0
    last_seq: int = 0


class InFlight(msgspec.Struct, kw_only=True):
    """A job whose intent is journalled and whose completion is not."""

    request: str
    kind: str
    experiment: str | None
    candidate: str | None
    champion: str | None
    purpose: str
    since: str
    seq: int


class Nudge(msgspec.Struct, kw_only=True):
    """An operator's message and how far it got."""

    id: str
    text: str
    category: str
    state: str = "queued"
    """`queued`, `delivered`, `acknowledged`."""
    seq: int = 0


class Alert(msgspec.Struct, kw_only=True):
    """A note of level `warning` or `alert`."""

    seq: int
    level: str
    text: str


class RunState(msgspec.Struct, kw_only=True):
    """Everything a screen, a report or a resumed daemon needs to know of one run."""

    seq: int = 0
    """Of the last record folded in."""
    last_ts: str = ""
    started_ts: str = ""
    run: str = ""
    title: str = ""
    problem: str = ""
    problem_sha256: str = ""
    problem_title: str = ""
    cases: list[str] = []
    device: str = ""
    model: str = ""
    profile: str = ""
    gate: str = ""
    config: dict[str, Any] = {}
    status: str = "new"
    """`new`, `running`, `draining`, `paused`, `stopping`, `stopped`, `finished`, `failed`."""
    status_reason: str = ""
    requested: str | None = None
    """A control asked for and not yet in force: `pause`, `resume`, `stop`."""
    qualified: bool | None = None
    qualification: str = ""
    """In words, e.g. `quick: 12 of 12 controls`."""
    fingerprint: str = ""
    baseline_us: float | None = None
    compiled_us: float | None = None
    floor: float | None = None
    floor_by_case: dict[str, float] = {}
    champion: str | None = None
    """sha256; None is the reference."""
    champion_us: float | None = None
    speedup: float = 1.0
    """Of the champion over the baseline."""
    promotions: list[Promotion] = []
    bank: list[str] = []
    """Experiments banked and not yet promoted in a stack."""
    ideas: dict[str, Idea] = {}
    experiments: dict[str, Experiment] = {}
    agents: dict[str, Agent] = {}
    in_flight: list[InFlight] = []
    finished_requests: dict[str, int] = {}
    """Request id to the seq of its `job.finished`."""
    voided: int = 0
    nudges: list[Nudge] = []
    alerts: list[Alert] = []
    """The latest 200."""
    world_model_sha256: str = ""
    world_model_lines: int = 0
    world_model_text: str = ""
    world_model_history: list[int] = []
    """seq of every `world_model.edited`."""
    effects: dict[str, int] = {}
    """`<kind> <cause>` to the seq of the effect that a tool call had."""
    results: dict[str, int] = {}
    """`<agent>/<call id>` to the seq of its `agent.result`."""
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    cost_usd: float | None = 0.0
    """None once any reply's price is unknown."""
    device_s: float = 0.0
    records: int = 0
    resumed: int = 0
    unknown_kinds: dict[str, int] = {}
