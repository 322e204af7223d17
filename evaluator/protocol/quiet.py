"""Whether a block counts: a trusted canary before and after it, judged before its times are read.

An unquiet block is void together with its partner. Too many void blocks, or clearly more in the
candidate's turns than in the reference's, end the measurement.
Not for: looking at trial times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

BAND = 1.6
"""A canary slower than this multiple of its calibrated median makes the block unquiet."""
MAX_VOID_SHARE = 0.2
MIN_PAIRS = 5
"""Below so many pairs a share says nothing."""


class Unquiet(Exception):
    """The device is not quiet enough to measure on; infrastructure, not the candidate's doing."""


class UnquietByCandidate(Exception):
    """Void blocks follow the candidate's turns."""


@dataclass(slots=True)
class Quiet:
    """The canary's calibration and the record of voided pairs."""

    calibration: list[float] = field(default_factory=list)
    pairs: int = 0
    voided: int = 0
    after_candidate: int = 0
    after_reference: int = 0

    def is_quiet(self, canary_us: float) -> bool:
        """Whether one canary lies in its band."""
        return canary_us <= BAND * float(np.median(self.calibration))

    def count(self, *, first: bool, between: bool, last: bool, candidate_first: bool) -> bool:
        """Record one pair by its three canaries; return whether it counts."""
        self.pairs += 1
        self.after_candidate += not (between if candidate_first else last)
        self.after_reference += not (last if candidate_first else between)
        quiet = first and between and last
        self.voided += not quiet
        return quiet

    def judge(self) -> None:
        """Raise when the record says that this cannot be measured."""
        if self.pairs < MIN_PAIRS or self.voided <= max(1, MAX_VOID_SHARE * self.pairs):
            return
        if self.after_candidate >= 4 and self.after_candidate >= 3 * max(1, self.after_reference):
            raise UnquietByCandidate(
                f"of {self.pairs} canaries {self.after_candidate} were slow after the candidate's turns,"
                f" {self.after_reference} after the reference's"
            )
        if self.pairs >= 3 * MIN_PAIRS:
            raise Unquiet(f"{self.voided} of {self.pairs} pairs of blocks were not quiet")
