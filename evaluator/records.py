"""Jobs, results and verdicts: what crosses the boundary of the judge.

Standard library only, so that every package (and a bare GPU host) can import it without torch.
Invariant: a record is plain data. `encode` and `decode` are each other's inverse, a reader ignores
fields it does not know, and a non-finite float never reaches JSON (it is a ValueError).
Not for: anything that decides. Statistics, gates and status rules live beside the judge.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import types
import typing
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1

T = typing.TypeVar("T")


class Status(enum.StrEnum):
    """How one job ended."""

    OK = "ok"
    INCORRECT = "incorrect"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    FORBIDDEN = "forbidden"
    TAMPERED = "tampered"
    NO_CUSTOM_KERNEL = "no_custom_kernel"
    EVALUATOR_ERROR = "evaluator_error"
    """Infrastructure: retried by the client, never charged to the model, never cached as a score."""


class JobKind(enum.StrEnum):
    """What the judge is asked to do."""

    CHECK = "check"
    """Build and correctness on seeds of its own; no protected figure."""
    EVALUATE = "evaluate"
    """All seven steps: integrity, gate, build, references, correctness, timing, verdict."""
    AB = "ab"
    """Symmetric A/B of `candidate` against `champion`."""
    FLOOR = "floor"
    """A/A of `champion` against itself: the noise floor of this device, now."""
    BASELINE = "baseline"
    """Eager and torch.compile times of the reference."""
    ROBUSTNESS = "robustness"
    """Correctness beyond the benchmark's own inputs; never times anything."""
    QUALIFY = "qualify"
    """Runs the controls against the evaluator itself."""


class Decision(enum.StrEnum):
    """What one symmetric A/B established."""

    FASTER = "faster"
    SLOWER = "slower"
    UNRESOLVED = "unresolved"
    """The interval, the floor or the two clocks leave it open: an honest outcome, not an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One candidate source text, content-addressed."""

    sha256: str
    """Lower-case hex digest of the UTF-8 text."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request to the judge."""

    id: str
    """Request id `kernel|<problem>|<episode or experiment>|<n>`: never has two journalled results."""
    kind: JobKind
    problem: str
    """A key (`builtin:scan`) or an absolute path."""
    problem_sha256: str | None = None
    """Hash fixed at the start of the run; None means the manifest's (built-in) or unchecked (first look at a path)."""
    candidate: Source | None = None
    champion: Source | None = None
    """For `ab` and `floor`; None means the reference itself."""
    profile: str = "open"
    """Static gate profile: `seed` or `open`."""
    device: str = "cpu"
    cases: tuple[str, ...] | None = None
    """Case names to run; None means every benchmark case of the device."""
    options: dict[str, Any] = field(default_factory=dict)
    """Per kind: `seeds`, `trials`, `pairs`, `timeout_s`, `quick`, `naive`, `floor`; the judge names unknown ones."""
    v: int = FORMAT_VERSION


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
    """Correct and the lower end of the speed-up's interval >= 1 on the geometric mean."""
    fast1_raw: bool
    """Correct and the point estimate >= 1."""
    speedup: float | None
    """Geometric mean over cases."""
    speedup_ci: Interval | None
    speedup_bound: float | None
    score: float
    """Speed-up if correct, else 0, capped at 10."""
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
    champion_us: float | None = None
    candidate_us: float | None = None


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
    qualification: Qualification | None = None
    fingerprint: dict[str, Any] = field(default_factory=dict)
    """`{"sha256": ..., "torch": ..., "compiler": ..., ...}`."""
    context: dict[str, Any] = field(default_factory=dict)
    """Device state around the measurement."""
    wall_s: float = 0.0
    device_s: float = 0.0
    """Seconds the device lease was used for timing."""
    v: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a running job: a gauge for people, never journalled."""

    job: str
    step: str
    """`integrity`, `gate`, `build`, `references`, `correctness`, `timing`, `verdict`, ..."""
    detail: str = ""
    done: int | None = None
    total: int | None = None


def encode(record: Any) -> Any:
    """Return `record` as JSON-ready builtins; a non-finite float is a ValueError."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: encode(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, enum.Enum):
        return record.value
    if isinstance(record, dict):
        return {str(k): encode(v) for k, v in record.items()}
    if isinstance(record, (list, tuple)):
        return [encode(v) for v in record]
    if isinstance(record, float) and not math.isfinite(record):
        raise ValueError("a non-finite number in a record")
    return record


def decode(cls: type[T], data: Any) -> T:
    """Build a `cls` from what `encode` returned; unknown fields are ignored, a wrong shape is a ValueError."""
    return typing.cast("T", _decode(cls, data, cls.__name__))


def dumps(record: Any) -> str:
    """One line of JSON."""
    return json.dumps(encode(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _decode(hint: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(hint, data, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_dataclass(hint, data, where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(data)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where}: expected a list")
        item = typing.get_args(hint)[0]
        return tuple(_decode(item, v, f"{where}[{i}]") for i, v in enumerate(data))
    if hint is float:
        if isinstance(data, bool) or not isinstance(data, (int, float)):
            raise ValueError(f"{where}: expected a number")
        return float(data)
    if isinstance(hint, type) and origin is None and (not isinstance(data, hint) or (hint is int and isinstance(data, bool))):
        raise ValueError(f"{where}: expected {hint.__name__}, got {type(data).__name__}")
    return data


def _decode_union(hint: Any, data: Any, where: str) -> Any:
    if data is None:
        return None
    options = [a for a in typing.get_args(hint) if a is not types.NoneType]
    return _decode(options[0], data, where)


def _decode_dataclass(cls: type[Any], data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object")
    hints = typing.get_type_hints(cls)
    known = {f.name: _decode(hints[f.name], data[f.name], f"{where}.{f.name}") for f in dataclasses.fields(cls) if f.name in data}
    try:
        return cls(**known)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
