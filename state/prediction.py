"""The prediction an experiment is bound to before anything is measured.

Invariant: `freeze` is canonical: the same beliefs in any order, with 2 or 2.0 for a bound, give the
same bytes and so the same hash; what does not validate is never frozen.
Not for: comparing it with the outcome (`state.reconciliation`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence

import msgspec

from state.errors import BadPrediction
from state.events import Belief

BASIS_CHARS = 2000
"""Longest basis of one belief."""


def problems_of(beliefs: Sequence[Belief], *, cases: Collection[str]) -> tuple[str, ...]:
    """Every reason why `beliefs` cannot be frozen; `cases` are the names that exist."""
    found = [] if beliefs else ["it has no belief about any case"]
    seen: set[str] = set()
    for belief in beliefs:
        found += [f"{belief.case[:80]}: {why}" for why in _problems_of_one(belief, cases)]
        if belief.case in seen:
            found.append(f"{belief.case[:80]}: predicted twice")
        seen.add(belief.case)
    return tuple(found)


def validate(beliefs: Sequence[Belief], *, cases: Collection[str]) -> None:
    """Raise BadPrediction, listing every reason, unless `beliefs` can be frozen."""
    if found := problems_of(beliefs, cases=cases):
        raise BadPrediction(found)


def freeze(beliefs: Sequence[Belief]) -> bytes:
    """The canonical bytes: a JSON list sorted by case, fields in the order of `Belief`."""
    plain = [
        Belief(case=b.case, low=float(b.low), high=float(b.high), basis=b.basis, level=float(b.level))
        for b in sorted(beliefs, key=lambda b: b.case)
    ]
    return msgspec.json.encode(plain)


def prediction_sha256(beliefs: Sequence[Belief]) -> str:
    """sha256 of `freeze(beliefs)`, lower-case hex."""
    return hashlib.sha256(freeze(beliefs)).hexdigest()


def _problems_of_one(belief: Belief, cases: Collection[str]) -> list[str]:
    found: list[str] = []
    if belief.case not in cases:
        found.append(f"no such case; known: {', '.join(sorted(cases)[:20])}")
    if not (math.isfinite(belief.low) and math.isfinite(belief.high)) or belief.low <= 0 or belief.low >= belief.high:
        found.append(f"needs 0 < low < high, got [{belief.low:g}, {belief.high:g}]")
    if not 0 < belief.level < 1:
        found.append(f"level {belief.level:g} is not between 0 and 1")
    if not belief.basis.strip():
        found.append("the basis is empty: say what the numbers come from")
    if len(belief.basis) > BASIS_CHARS:
        found.append(f"the basis is longer than {BASIS_CHARS} characters")
    return found
