"""One claim of the world model: what it says, what it asserts, and what speaks for and against it.

Invariant: frozen data; `Assertion.contradicted_by` is the only place that compares an assertion with a
measurement.
Not for: the document around claims (`state.world_model`) or rules about them (`state.belief_rules`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

CLAIM_ID = re.compile(r"[A-Za-z]{1,8}\d{1,6}")

GEOMEAN = "geomean"
"""Case name of an assertion about the geometric mean over cases."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_ASSERTION = re.compile(
    rf"(?P<metric>[A-Za-z_][\w.]*)@(?P<case>[^\s;()]+)\s+(?:in\s+\[\s*(?P<low>{_NUMBER})\s*,\s*(?P<high>{_NUMBER})\s*\]|(?P<sign>[<>])\s*(?P<bound>{_NUMBER}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A claim's checkable part: `speedup@long in [1.2, 2]`, `speedup@short < 1`.

    `speedup` is t_champion / t_candidate of the experiments that rest on the claim.
    """

    metric: str
    case: str
    low: float
    """-inf for `<`."""
    high: float
    """inf for `>`."""

    def __str__(self) -> str:
        name = f"{self.metric}@{self.case}"
        if self.low == -math.inf:
            return f"{name} < {_number(self.high)}"
        if self.high == math.inf:
            return f"{name} > {_number(self.low)}"
        return f"{name} in [{_number(self.low)}, {_number(self.high)}]"

    def contradicted_by(self, value: float, *, low: float | None = None, high: float | None = None) -> bool:
        """Whether a measurement lies outside: all of its interval where there is one, else the point."""
        return (value if high is None else high) < self.low or (value if low is None else low) > self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One belief."""

    id: str
    sentence: str
    confidence: float
    """0 to 1."""
    assertions: tuple[Assertion, ...] = ()
    evidence: tuple[str, ...] = ()
    """Experiments (or other sources) that support it."""
    against: tuple[str, ...] = ()
    """Experiments that contradict it."""
    external: str = ""
    """Date of the web source when it rests on that alone."""
    buried: str = ""
    """Why it lies in the graveyard; empty elsewhere."""
    notes: tuple[str, ...] = ()
    """Lines that a person wrote below it, as they are."""
    mark: str = "-"
    """How its line begins: `-`, `*`, `+` or a heading's hashes."""
    source: tuple[str, ...] = field(default=(), compare=False)
    """The lines it was read from, kept so that an untouched claim is written back unchanged."""


def parse_assertion(text: str) -> Assertion:
    """`metric@case in [low, high]`, `metric@case > x` or `metric@case < x`; ValueError says what is wrong."""
    match = _ASSERTION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"assertion {text.strip()[:80]!r} is not `metric@case in [low, high]` or `metric@case > x`")
    low, high = _bounds(match)
    if not low < high or {low, high} == {-math.inf, math.inf} or math.inf == low or high == -math.inf:
        raise ValueError(f"assertion {text.strip()[:80]!r} needs finite numbers, low < high")
    return Assertion(metric=match["metric"], case=match["case"], low=low, high=high)


def _bounds(match: re.Match[str]) -> tuple[float, float]:
    if match["sign"] == ">":
        return float(match["bound"]), math.inf
    if match["sign"] == "<":
        return -math.inf, float(match["bound"])
    return float(match["low"]), float(match["high"])


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
