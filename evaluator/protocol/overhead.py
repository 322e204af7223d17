"""What an empty call costs, measured in the trusted runner only, never in a candidate's.

`overhead` is a low quantile of the same request with an empty `forward`; the smaller of the figure
from before any candidate exists and the interleaved one is used, so a candidate that makes the
machine slow cannot enlarge what is subtracted from it. `slack` bounds what native code in a runner could
save without computing any faster: all that a call costs which does nothing (the loop, a module's dispatch)
but a bare wake-and-stop of a process.
Not for: deciding whether two clocks agree (`evaluator.statistics`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from evaluator.statistics import low_quantile, overhead

REACH = 0.9
"""Quantile of the reach that bounds it."""


@dataclass(slots=True)
class Overhead:
    """Empty-call times of the trusted runner, in microseconds."""

    before: list[float] = field(default_factory=list)
    interleaved: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    """The shortest request there is, before any candidate exists."""
    dispatch: list[float] = field(default_factory=list)
    """The same request with a module that does nothing in the place of `forward`, before any candidate exists."""
    reach: list[float] = field(default_factory=list)
    """What it took to get at an output after the answer; empty where the runner stands still by then."""

    def overhead_us(self) -> float:
        """The figure to subtract."""
        return overhead(self.before, self.interleaved or self.before)

    def slack_us(self) -> float:
        """What a runner could save by answering natively, and what it could finish unseen afterwards: a constant per call."""
        nothing = max(self.overhead_us(), float(np.median(self.dispatch)) if self.dispatch else 0.0)
        saved = max(0.0, nothing - (low_quantile(self.bare) if self.bare else 0.0))
        return saved + (float(np.quantile(self.reach, REACH)) if self.reach else 0.0)
