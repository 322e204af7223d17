"""The two clocks of a trial side by side: what counts, and when their disagreement is tampering.

*event* is the runner's own clock around `forward`: precise, forgeable. *wall* is the judge's clock
around the whole request; *overhead* is the same request with an empty `forward`, in the trusted
runner. Native code can win at most `slack_us` of the overhead.
Invariant: the time of a trial is never below wall - overhead, so a forged event gains nothing.
Not for: refusing a slow machine; one odd block is a flag, a pattern is needed for `gross`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.records import Audit
from evaluator.statistics.estimate import Floats, positive

GROSS_SHARE = 0.5
"""A block is grossly off when events leave more than this share of its net wall time unexplained (or claim as much too much)."""
GROSS_BLOCKS = 1 / 3
"""Share of blocks that must be grossly off (and at least two) before it is tampering."""
TOLERATED_BLOCKS = 0.1
"""Share of blocks that may disagree by more than the slack before the result is flagged: single wake-ups of a busy machine."""


class Agreement(enum.StrEnum):
    """How the two clocks relate over all blocks."""

    AGREES = "agrees"
    WALL_DECIDES = "wall decides"
    """They differ by more than the slack: the result is flagged."""
    GROSS = "gross"
    """They differ grossly: `tampered` when it is the candidate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the audit of one side found."""

    agreement: Agreement
    reason: str
    audit: Audit
    disagreeing: int
    """Blocks whose clocks differ by more than the slack."""
    gross: int
    blocks: int


def trial_times(*, event_us: Sequence[float], wall_us: Sequence[float], overhead_us: float) -> list[float]:
    """max(event, wall - overhead) of every trial, microseconds; shapes (n,), (n,) -> (n,)."""
    event, wall = _aligned(event_us, wall_us)
    return [float(t) for t in np.maximum(event, wall - overhead_us)]


def audit_blocks(
    *,
    event_us: Sequence[Sequence[float]],
    wall_us: Sequence[Sequence[float]],
    overhead_us: float,
    slack_us: float,
    usual_us: float = 0.0,
    gross_share: float = GROSS_SHARE,
) -> Ruling:
    """Compare `event` with `wall - overhead` block by block (medians of a block's trials).

    `usual_us` is how far the two clocks of the trusted runner lie apart on the same machine and case:
    blocks agree when they differ by at most slack_us + usual_us.

    Both arguments hold one sequence of trials per block, microseconds, in the same shapes.
    """
    if len(event_us) != len(wall_us) or not event_us:
        raise ValueError(f"{len(event_us)} blocks of events against {len(wall_us)} of the wall")
    pairs = [_aligned(event, wall) for event, wall in zip(event_us, wall_us, strict=True)]
    event = np.array([np.median(e) for e, _ in pairs])
    net = np.array([np.median(w) for _, w in pairs]) - overhead_us
    difference = np.abs(net - event)
    off = difference > slack_us + usual_us
    gross = off & (difference > gross_share * np.maximum(net, event))
    agreement = _rule(off=int(off.sum()), gross=int(gross.sum()), blocks=len(pairs))
    audit = Audit(
        event_us=float(np.median(np.concatenate([e for e, _ in pairs]))),
        wall_us=float(np.median(np.concatenate([w for _, w in pairs]))),
        overhead_us=float(overhead_us),
        slack_us=float(slack_us),
        agrees=agreement is Agreement.AGREES,
    )
    reason = _words(agreement, audit, int(off.sum()), int(gross.sum()), len(pairs))
    return Ruling(agreement=agreement, reason=reason, audit=audit, disagreeing=int(off.sum()), gross=int(gross.sum()), blocks=len(pairs))


def _rule(*, off: int, gross: int, blocks: int) -> Agreement:
    if gross >= 2 and gross > GROSS_BLOCKS * blocks:
        return Agreement.GROSS
    return Agreement.AGREES if off <= TOLERATED_BLOCKS * blocks else Agreement.WALL_DECIDES


def _words(agreement: Agreement, audit: Audit, off: int, gross: int, blocks: int) -> str:
    figures = f"events {audit.event_us:.1f} us, wall {audit.wall_us:.1f} us less overhead {audit.overhead_us:.1f} us"
    if agreement is Agreement.AGREES:
        return f"the clocks agree in {blocks - off} of {blocks} blocks within {audit.slack_us:.1f} us: {figures}"
    if agreement is Agreement.GROSS:
        return f"the clocks disagree grossly in {gross} of {blocks} blocks: {figures}"
    return f"the clocks disagree by more than {audit.slack_us:.1f} us in {off} of {blocks} blocks: {figures}"


def _aligned(event_us: Sequence[float], wall_us: Sequence[float]) -> tuple[Floats, Floats]:
    event, wall = np.asarray(event_us, dtype=np.float64), positive(wall_us, what="wall times")
    if event.shape != wall.shape:
        raise ValueError(f"{event.size} event times against {wall.size} wall times")
    if not np.all(np.isfinite(event)) or np.any(event < 0):
        raise ValueError("an event time is negative or not finite")
    return event, wall
