"""What the judge answers: one result, with the report of its kind.

Every time is in microseconds and every interval two-sided unless a field says otherwise.
Not for: anything that decides. Statistics, gates and status rules live beside the judge.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from evaluator.records.jobs import FORMAT_VERSION, JobKind, Status


class Decision(enum.StrEnum):
    """What one symmetric A/B established."""

    FASTER = "faster"
    SLOWER = "slower"
    UNRESOLVED = "unresolved"
    """The interval, the floor or the two clocks leave it open: an honest outcome, not an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided interval."""

    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The two clocks side by side (medians over kept trials)."""

    event_us: float
    """The runner's own clock around `forward`: precise, forgeable."""
    wall_us: float
    """The judge's clock around the same calls."""
    overhead_us: float
    """The same request with an empty `forward`, from the trusted runner only."""
    slack_us: float
    """What native code could save of the overhead: a constant per call."""
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCheck:
    """Correctness of one case."""

    case: str
    correct: bool
    seeds: int
    """How many independent draws of weights and inputs were compared."""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    detail: str = ""
    """First mismatch in words, empty when correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTiming:
    """Speed of one case against the reference."""

    case: str
    ref_us: float
    """Median trial time of the reference (the faster of alone and interleaved)."""
    cand_us: float
    """Median trial time of the candidate, max(event, wall - overhead)."""
    speedup: float
    """ref_us / cand_us."""
    speedup_ci: Interval
    """Block bootstrap, two-sided 95 %."""
    speedup_mean: float
    """Ratio of mean trial times."""
    speedup_bound: float
    """ref_us / (cand_us + slack_us): what holds even if the whole slack was won."""
    trials: int
    blocks: int
    voided: int
    """Unquiet blocks left out before their times were read."""
    audit: Audit
    """Of the candidate's trials."""
    ref_audit: Audit | None = None
    """Of the reference's trials: same protocol, same code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a naive evaluator (one process, its own clock, one fixed input) would have believed."""

    correct: bool
    speedup: float | None
    """Speed-up it would have credited; None where it could not run the candidate."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Report of one protected evaluation."""

    correct: bool
    fast1: bool
    """Correct, and both the lower end of the speed-up's interval and `speedup_bound` >= 1 on the geometric mean."""
    fast1_raw: bool
    """Correct and the point estimate >= 1."""
    speedup: float | None
    """Geometric mean over cases."""
    speedup_ci: Interval | None
    speedup_bound: float | None
    score: float
    """Speed-up if correct, else 0, capped at 10; where the slack could explain the gain, what remains without it."""
    checks: tuple[CaseCheck, ...] = ()
    timings: tuple[CaseTiming, ...] = ()
    flags: tuple[str, ...] = ()
    """In words: `over 10x`, `clocks disagree`, `reused output buffer`, `within slack`, ..."""
    naive: Claim | None = None
    """Present when the job asked for it and the candidate was refused."""
    trials: dict[str, Any] = field(default_factory=dict)
    """Raw trials by case: {case: {"ref": [[...us per block]], "cand": [[...]], "seed": int}}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRatio:
    """One case of a symmetric A/B. rho = t_candidate / t_champion; < 1 is faster."""

    case: str
    rho: float
    """sqrt(r_fwd / r_bwd) by events, median over pairs."""
    rho_ci: Interval
    rho_wall: float
    """The same by the judge's wall alone."""
    rho_wall_ci: Interval
    slot_bias: float
    """c = sqrt(r_fwd * r_bwd); 1 is no bias."""
    floor: float
    """Measured noise floor of this case on this device, as a relative difference (0.01 is 1 %)."""
    pairs: int
    """Counterbalanced pairs in each order."""
    forward: tuple[float, ...] = ()
    """r of every forward pair (candidate first), by events."""
    backward: tuple[float, ...] = ()
    starts: tuple[int, ...] = ()
    """Which start of the two processes each pair belongs to."""
    champion_us: float | None = None
    candidate_us: float | None = None
    slack_us: float = 0.0
    """What a runner could save a call without computing any faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Report of one symmetric A/B (rung 3)."""

    decision: Decision
    reason: str
    """The decision in words."""
    rho: float
    """Geometric mean over cases, by events."""
    rho_ci: Interval
    rho_wall: float
    rho_wall_ci: Interval
    floor: float
    """Of the geometric mean."""
    cases: tuple[CaseRatio, ...]
    champion_sha256: str | None
    """None: the reference."""
    candidate_sha256: str
    outputs_verified: int
    """How many of the timed outputs were compared with the reference, all of them right."""
    slack: float = 1.0
    """By how much rho would rise if the candidate had won the whole slack of every call: geometric mean of 1 + slack_us / candidate_us."""
    slowed: float = 1.0
    """How many times as long the champion took beside the candidate as by itself, before or after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorCase:
    """Noise floor of one case: A/A of identical sources in two processes."""

    case: str
    floor: float
    """Relative difference that identical sources stay within (the far end of rho's 95 % interval)."""
    rho: float
    rho_ci: Interval
    rho_wall: float
    rho_wall_ci: Interval
    slot_bias: float
    pairs: int
    spread: float
    """Relative interquartile range of single trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Report of one floor job."""

    floor: float
    """Of the geometric mean over cases."""
    cases: tuple[FloorCase, ...]
    source_sha256: str | None
    """None: the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """Eager and compiled time of the reference on one case."""

    case: str
    eager_us: float
    compiled_us: float | None
    """None where torch.compile is not available; the reason is in the result's message."""
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Report of one baseline job."""

    eager_us: float
    """Geometric mean over cases."""
    compiled_us: float | None
    cases: tuple[BaselineCase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessPart:
    """One part of the robustness suite."""

    name: str
    """`seeds`, `repeated calls`, `input mutation`, `sizes`, ..."""
    passed: bool
    tests: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Report of one robustness job."""

    passed: bool
    parts: tuple[RobustnessPart, ...]
    not_checked: tuple[str, ...] = ()
    """Parts of the full suite that this version or device does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledOperation:
    """One operation or kernel; figures per call of the candidate."""

    name: str
    where: str
    """`host` or `device`."""
    calls: float
    us: float
    """Its own time, without what it called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCase:
    """Where one case's time goes."""

    case: str
    plain_us: float
    """Median time of a call without the profiler, on the process's own clock."""
    operations: tuple[ProfiledOperation, ...]
    """The longest first."""
    gaps: int
    """How often the device was idle between two of its kernels, over all calls; 0 where the device is the processor."""
    gap_us: float | None
    """Median of those idle times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Report of one profile job: told by the candidate's own process, so help for its author and never evidence."""

    calls: int
    cases: tuple[ProfileCase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOutcome:
    """One qualification control."""

    control: str
    profile: str
    gate: bool
    """Whether the static gate was on."""
    expected: str
    """Status it must get, or the gain it may have, in words."""
    got: str
    passed: bool
    speedup: float | None = None
    naive_speedup: float | None = None
    naive_correct: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """Report of one qualification."""

    qualified: bool
    quick: bool
    controls: tuple[ControlOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Answer of the judge to one job."""

    job: str
    """The job's id."""
    kind: JobKind
    status: Status
    message: str = ""
    """One or two lines: what was found, where."""
    hint: str = ""
    """The mend, where there is one."""
    log: str = ""
    """Compiler output or traceback, bounded and sanitised."""
    problem: str = ""
    problem_sha256: str = ""
    source_sha256: str | None = None
    profile: str = "open"
    evaluation: Evaluation | None = None
    verdict: Verdict | None = None
    floor: Floor | None = None
    baseline: Baseline | None = None
    robustness: Robustness | None = None
    profiled: Profile | None = None
    qualification: Qualification | None = None
    fingerprint: dict[str, Any] = field(default_factory=dict)
    """`{"sha256": ..., "torch": ..., "compiler": ..., ...}`."""
    context: dict[str, Any] = field(default_factory=dict)
    """Device state around the measurement."""
    wall_s: float = 0.0
    device_s: float = 0.0
    """Seconds the device lease was used for timing."""
    v: int = FORMAT_VERSION
