"""The order of timing: blocks of random size in random order, drawn from the system's entropy.

A block is a run of calls of one side; a pair is one block of each side, back to back. Neither size
nor order can be known to a runner, and the last call of every block is always verified.
Not for: deciding whether a block counts (`protocol.quiet`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class BlockPair:
    """Two blocks, back to back."""

    reference: int
    """Calls of the reference."""
    candidate: int
    candidate_first: bool


def plan(trials: int, *, smallest: int = 3, largest: int = 7) -> list[BlockPair]:
    """At least two pairs of blocks, with at least `trials` calls a side."""
    pairs: list[BlockPair] = []
    reference = candidate = 0
    while min(reference, candidate) < trials or len(pairs) < 2:
        pair = BlockPair(_random.randint(smallest, largest), _random.randint(smallest, largest), bool(secrets.randbits(1)))
        pairs.append(pair)
        reference, candidate = reference + pair.reference, candidate + pair.candidate
    return pairs


def verify_now(*, last: bool, share: float = 0.5) -> bool:
    """Whether the call that was just answered is verified; drawn after its answer.

    Whoever moves a median must answer wrongly in more than half of the calls: 11 of 20, 31 of 60, 21 of 40
    pairs. At one half none of them is looked at once in 2,000, 2 billion and 2 million measurements; at a
    fifth it was once in 12, 1,000 and 100.
    """
    return last or _random.random() < share


def counterbalanced(pairs: int) -> list[bool]:
    """`pairs` forward (True) and `pairs` backward (False) orders, shuffled."""
    order = [True] * pairs + [False] * pairs
    _random.shuffle(order)
    return order


def slot(slots: int) -> int:
    """Which slot of the pool counts."""
    return secrets.randbelow(slots)


def seed() -> int:
    """A fresh 63-bit seed."""
    return secrets.randbits(63)
