"""Beliefs as models give them: an interval of speed-up per case, with its basis.

Invariant: what these become is what `state.prediction` freezes; it alone says what is valid.
Not for: comparing them with an outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from agents.bounds import clip, plain
from agents.errors import ToolError
from state.events import Belief
from state.prediction import problems_of


class BeliefInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Expected speed-up over the champion of this moment on one case."""

    case: str
    low: float
    """t_champion / t_candidate; 1.2 is 1.2 times faster, 0.9 is slower."""
    high: float
    basis: str
    """What the numbers come from: a count, a measurement, a claim of the world model."""
    level: float = 0.8
    """Probability that the interval holds."""


def beliefs_from(given: Sequence[BeliefInput], *, cases: Collection[str]) -> list[Belief]:
    """Checked beliefs; everything that is wrong is one `ToolError`."""
    beliefs = [Belief(case=b.case, low=b.low, high=b.high, basis=clip(plain(b.basis), 2000), level=b.level) for b in given]
    found = list(problems_of(beliefs, cases=cases))
    found += [f"{case}: not predicted" for case in cases if case not in {b.case for b in beliefs}]
    if found:
        raise ToolError(
            "the prediction cannot be frozen: " + "; ".join(found), f"give one interval and its basis for each of: {', '.join(cases)}"
        )
    return beliefs
