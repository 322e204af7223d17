"""The decision rule of a symmetric A/B, fixed before any data exists.

Invariant: a difference is only called when both clocks show it; everything else is `unresolved`
with the reason in words. The events' clock is precise and forgeable, the judge's wall is coarse and
honest: so the events must clear the floor, and the wall must exclude 1 and agree with the events.
And what a champion lost beside the candidate, against itself alone before and after, is nothing that the
candidate gained; nor is what its runner could save without computing any faster.
Not for: promotion (the daemon's gate weighs more than speed).
"""

from __future__ import annotations

from math import isfinite

from evaluator.records import Decision, Interval

SLOWED = 0.02
"""Relative slow-down of the champion that is noise in any case; twice the floor is as well."""

_LOST = "the gain is not to be told from what the champion lost beside the candidate"
_WITHIN_SLACK = "within slack: a runner could win as much without computing any faster"


def noise_floor(interval: Interval) -> float:
    """Relative difference that identical sources stay within: the far end of an A/A's rho interval from 1."""
    return max(interval.high - 1.0, 1.0 - interval.low, 0.0)


def decide(
    *, rho: float, rho_ci: Interval, rho_wall: float, rho_wall_ci: Interval, floor: float, slowed: float = 1.0, slack: float = 1.0
) -> tuple[Decision, str]:
    """Decide one A/B; rho = t_candidate / t_champion, `floor` a relative difference (0.01 is 1 %).

    FASTER needs the upper end of rho's interval by events below 1 - floor, and a wall interval that
    excludes 1 and contains the events' rho. Both upper ends must hold with the factor `slack` as well, by which
    rho would rise if the candidate had won the whole slack; and where the champion took clearly more than
    `slowed` = 1 times what it took alone, with that factor put back, too. SLOWER is the mirror image (neither
    can make it so). Anything else is UNRESOLVED.
    """
    if not (isfinite(slack) and slack >= 1.0):
        raise ValueError("the slack is no factor from 1")
    _check(rho, rho_ci, rho_wall, rho_wall_ci, floor)
    figures = f"rho {_figure(rho, rho_ci)} by events, {_figure(rho_wall, rho_wall_ci)} by the wall, floor {100 * floor:.2f} %"
    lost = slowed if slowed > 1.0 + max(SLOWED, 2 * floor) else 1.0
    if lost > 1.0:
        figures = f"{figures}; the champion took {slowed:.3f} times as long beside the candidate as by itself"
    if slack > 1.0:
        figures = f"{figures}, slack {100 * (slack - 1):.2f} %"
    if rho_ci.high < 1.0 - floor:
        for factor, why in ((lost, _LOST), (lost * slack, _WITHIN_SLACK)):
            if rho_ci.high * factor >= 1.0 - floor or rho_wall_ci.high < 1.0 <= rho_wall_ci.high * factor:
                return Decision.UNRESOLVED, f"{why}: {figures}"
        return _confirmed(Decision.FASTER, rho, rho_wall_ci, excludes=rho_wall_ci.high < 1.0, figures=figures)
    if rho_ci.low > 1.0 + floor:
        return _confirmed(Decision.SLOWER, rho, rho_wall_ci, excludes=rho_wall_ci.low > 1.0, figures=figures)
    return Decision.UNRESOLVED, f"{_why_open(rho_ci, floor)}: {figures}"


def _confirmed(decision: Decision, rho: float, wall: Interval, *, excludes: bool, figures: str) -> tuple[Decision, str]:
    if not excludes:
        return Decision.UNRESOLVED, f"{decision.value} by events, but the wall cannot tell: {figures}"
    if not wall.low <= rho <= wall.high:
        return Decision.UNRESOLVED, f"{decision.value} by events, but the wall's interval does not contain the events' rho: {figures}"
    return decision, f"{decision.value} on both clocks: {figures}"


def _why_open(rho_ci: Interval, floor: float) -> str:
    if rho_ci.low <= 1.0 <= rho_ci.high:
        return "no difference shown, the interval contains 1"
    if 1.0 - floor <= rho_ci.low and rho_ci.high <= 1.0 + floor:
        return "a difference below the floor"
    return "the interval does not clear the floor"


def _check(rho: float, rho_ci: Interval, rho_wall: float, rho_wall_ci: Interval, floor: float) -> None:
    numbers = (rho, rho_ci.low, rho_ci.high, rho_wall, rho_wall_ci.low, rho_wall_ci.high)
    if not all(isfinite(n) and n > 0 for n in numbers):
        raise ValueError("a ratio is not a positive finite number")
    if not (isfinite(floor) and floor >= 0):  # on a machine too noisy to tell anything it may be 1 and more
        raise ValueError("the floor is negative or not finite")
    if not (rho_ci.low <= rho <= rho_ci.high and rho_wall_ci.low <= rho_wall <= rho_wall_ci.high):
        raise ValueError("an interval does not contain its point")


def _figure(value: float, interval: Interval) -> str:
    return f"{value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"
