"""The kinds of record a run's journal holds, and what each carries.

`KINDS` maps a record's `kind` to the struct of its `data`. Readers accept unknown kinds and unknown
fields, so a kind is only ever extended, never changed. Every effect of an agent's tool call carries
`cause` (`<actor>/<call id>`), so that a call repeated after a crash finds the effect it already had.
Not for: folding records into state (`state.reducer`) or writing them (`state.journal`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from evaluator.records import Result

FORMAT_VERSION = 1


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `attempts.jsonl`."""

    v: int
    seq: int
    """From 1, no gaps."""
    ts: str
    """RFC 3339 UTC, for people; nothing is ordered by it."""
    run: str
    kind: str
    actor: str
    """`operator`, `orchestrator`, `idea:<id>`, `worker:<id>`, `red-team:<id>`, `evaluator` or `daemon`."""
    data: dict[str, Any]
    prev: str
    """Hash of the line before; 64 zeros for the first."""
    hash: str
    """sha256 of the canonical line without `hash`."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every `data`."""


class RunCreated(Event, frozen=True, kw_only=True):
    """kind `run.created`: the first record of a run."""

    title: str
    problem: str
    problem_sha256: str
    problem_title: str
    cases: list[str]
    device: str
    model: str
    """Model client: `scripted`, `replay`, `anthropic`, ..."""
    profile: str
    gate: str
    """Name of the promotion gate in force, e.g. `reduced gate (first light)`."""
    config: dict[str, Any] = {}
    uid: int | None = None
    cause: str | None = None


class RunResumed(Event, frozen=True, kw_only=True):
    """kind `run.resumed`: a daemon took the run over after the one before ended."""

    pid: int
    voided: list[str] = []
    """Request ids whose measurement was cut off; each is repeated under the same id."""


class RunControl(Event, frozen=True, kw_only=True):
    """kind `run.control`: what somebody asked for (`pause`, `resume`, `stop`)."""

    action: str
    reason: str = ""
    uid: int | None = None
    """Of the operator's process, by the kernel's word."""
    cause: str | None = None
    """`operator/<idempotency key>`."""


class RunStateChanged(Event, frozen=True, kw_only=True):
    """kind `run.state`: what the run now is: `running`, `draining`, `paused`, `stopping`, `stopped`, `finished`, `failed`."""

    state: str
    reason: str = ""
    in_flight: list[str] = []


class JobStarted(Event, frozen=True, kw_only=True):
    """kind `job.started`: the intent record of one evaluation."""

    request: str
    kind: str
    experiment: str | None = None
    candidate: str | None = None
    """sha256 of the source."""
    champion: str | None = None
    options: dict[str, Any] = {}
    purpose: str = ""
    cause: str | None = None


class JobFinished(Event, frozen=True, kw_only=True):
    """kind `job.finished`: the completion record; at most one per request id."""

    request: str
    result: Result
    experiment: str | None = None


class JobVoided(Event, frozen=True, kw_only=True):
    """kind `job.voided`: a start that never finished (killed daemon or judge); it will be repeated."""

    request: str
    why: str


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call inside a reply."""

    id: str
    name: str
    input: dict[str, Any] = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one reply; None is unknown, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class AgentStarted(Event, frozen=True, kw_only=True):
    """kind `agent.started`."""

    agent: str
    """Same form as `actor`."""
    role: str
    """`orchestrator`, `idea`, `worker`, `red-team`."""
    task: str
    """One line: what it was asked to do."""
    context: str = ""
    """The first message, whole: it rebuilds the conversation."""
    experiment: str | None = None
    model: str = ""
    cause: str | None = None


class AgentReply(Event, frozen=True, kw_only=True):
    """kind `agent.reply`: one whole model reply, journalled before anything acts on it."""

    agent: str
    turn: int
    """Counted from 0 per agent."""
    text: str
    calls: list[ToolCall] = []
    usage: Usage = Usage()
    model: str = ""


class AgentResult(Event, frozen=True, kw_only=True):
    """kind `agent.result`: what one tool call answered."""

    agent: str
    call: str
    """ToolCall.id"""
    name: str
    ok: bool
    content: dict[str, Any]


class AgentFinished(Event, frozen=True, kw_only=True):
    """kind `agent.finished`."""

    agent: str
    outcome: str
    """`done`, `failed`, `stopped`."""
    detail: str = ""


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """Expected speed-up over the champion of that moment (t_champion / t_candidate) on one case."""

    case: str
    low: float
    high: float
    basis: str
    level: float = 0.8
    """Probability that the interval holds."""


class IdeaProposed(Event, frozen=True, kw_only=True):
    """kind `idea.proposed`."""

    idea: str
    title: str
    category: str
    """`engineering`, `algorithmic` or `search`."""
    rationale: str
    beliefs: list[Belief]
    claims: list[str] = []
    """Ids of the world model's claims it rests on."""
    cause: str | None = None


class ExperimentOpened(Event, frozen=True, kw_only=True):
    """kind `experiment.opened`: the frozen prediction; no worker starts without it."""

    experiment: str
    idea: str
    title: str
    base: str | None
    """sha256 of the candidate it starts from; None is the reference."""
    champion: str | None
    """sha256 of the champion it was predicted against; None is the reference."""
    prediction: list[Belief]
    prediction_sha256: str
    claims: list[str] = []
    parts: list[str] = []
    """Experiments a stack combines."""
    cause: str | None = None


class CandidateSubmitted(Event, frozen=True, kw_only=True):
    """kind `candidate.submitted`: the text itself lies in `candidates/<sha256>.py`."""

    experiment: str
    sha256: str
    bytes: int
    note: str = ""
    cause: str | None = None


class ExperimentReported(Event, frozen=True, kw_only=True):
    """kind `experiment.reported`: the worker's conclusion, also when it failed."""

    experiment: str
    conclusion: str
    """One line."""
    report: str
    final: str | None
    """sha256 of the candidate it stands for."""
    cause: str | None = None


class CaseReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """Prediction beside outcome on one case; all ratios are t_champion / t_candidate."""

    case: str
    predicted_low: float | None
    predicted_high: float | None
    measured: float | None
    """None: nothing was measured (refused, incorrect, ...)."""
    measured_low: float | None = None
    measured_high: float | None = None
    log_error: float | None = None
    """ln(measured / predicted centre)."""
    covered: bool | None = None
    interval_score: float | None = None
    """Gneiting & Raftery's interval score on the log ratio; lower is better."""
    surprise: float | None = None
    """|log_error| / half-width of the interval on the log scale."""


class ClaimChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the world model."""

    claim: str
    before: float | None
    """Confidence before; None for a new claim."""
    after: float
    why: str
    evidence: list[str] = []


class ExperimentReconciled(Event, frozen=True, kw_only=True):
    """kind `experiment.reconciled`: the arithmetic is code's, the explanation the model's."""

    experiment: str
    cases: list[CaseReconciliation]
    surprise: float | None
    """The largest over cases."""
    source: str
    """What measured it: `ab`, `evaluation` or `none`."""
    explanation: str
    changes: list[ClaimChange] = []
    correctness: str
    performance: str
    hypothesis: str
    """`confirmed`, `refuted`, `untested`."""
    cause: str | None = None


class WorldModelEdited(Event, frozen=True, kw_only=True):
    """kind `world_model.edited`."""

    sha256: str
    lines: int
    text: str
    """The whole document after the edit."""
    changes: list[ClaimChange] = []
    why: str = ""
    cause: str | None = None


class Banked(Event, frozen=True, kw_only=True):
    """kind `experiment.banked`: below the floor, kept to be stacked."""

    experiment: str
    sha256: str
    rho: float
    rho_low: float
    rho_high: float
    floor: float
    cause: str | None = None


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the promotion gate."""

    name: str
    passed: bool
    detail: str


class GateDecided(Event, frozen=True, kw_only=True):
    """kind `gate.decided`: the answer to a request for promotion."""

    experiment: str
    sha256: str
    gate: str
    promoted: bool
    checks: list[GateCheck]
    not_checked: list[str]
    reason: str
    cause: str | None = None
    correctness: str = ""
    performance: str = ""
    hypothesis: str = ""
    retention: str = ""
    """The four fields at the moment of the decision."""


class Promoted(Event, frozen=True, kw_only=True):
    """kind `promotion`: the candidate is the champion from here on."""

    number: int
    experiment: str
    sha256: str
    previous: str | None
    rho: float
    """Against the champion before."""
    speedup: float
    """Over the baseline, from its evaluation."""
    champion_us: float
    """Geometric mean over cases, from its evaluation."""
    gate: str
    not_checked: list[str]


class NudgeQueued(Event, frozen=True, kw_only=True):
    """kind `nudge.queued`: an operator's message to the orchestrator."""

    nudge: str
    text: str
    category: str = "process"
    """`harness`, `process`, `evaluation`, `encouragement` or `intel`."""
    uid: int | None = None
    cause: str | None = None


class NudgeDelivered(Event, frozen=True, kw_only=True):
    """kind `nudge.delivered`: it is part of the orchestrator's next request."""

    nudge: str


class NudgeAcknowledged(Event, frozen=True, kw_only=True):
    """kind `nudge.acknowledged`: the reply to that request is journalled."""

    nudge: str


class Note(Event, frozen=True, kw_only=True):
    """kind `note`: something worth a line that changes no state (`level` is `info`, `warning` or `alert`)."""

    text: str
    level: str = "info"


KINDS: dict[str, type[Event]] = {
    "run.created": RunCreated,
    "run.resumed": RunResumed,
    "run.control": RunControl,
    "run.state": RunStateChanged,
    "job.started": JobStarted,
    "job.finished": JobFinished,
    "job.voided": JobVoided,
    "agent.started": AgentStarted,
    "agent.reply": AgentReply,
    "agent.result": AgentResult,
    "agent.finished": AgentFinished,
    "idea.proposed": IdeaProposed,
    "experiment.opened": ExperimentOpened,
    "candidate.submitted": CandidateSubmitted,
    "experiment.reported": ExperimentReported,
    "experiment.reconciled": ExperimentReconciled,
    "world_model.edited": WorldModelEdited,
    "experiment.banked": Banked,
    "gate.decided": GateDecided,
    "promotion": Promoted,
    "nudge.queued": NudgeQueued,
    "nudge.delivered": NudgeDelivered,
    "nudge.acknowledged": NudgeAcknowledged,
    "note": Note,
}
