"""What an operator asks for, and who it was.

Invariant: the uid is the kernel's word for the peer; the key makes an order that is sent twice one
order, also across a restart, because it is journalled as the record's cause.
Not for: carrying an order out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from daemon.errors import BadRequest

_KEY = re.compile(r"[A-Za-z0-9._:-]{1,100}")
NUDGE_LIMIT = 8000
"""Characters of one nudge."""
CATEGORIES = ("harness", "process", "evaluation", "encouragement", "intel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One mutation asked for over the API."""

    key: str
    """Idempotency key, chosen by the client."""
    uid: int | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise BadRequest("the idempotency key must be 1 to 100 letters, digits, dots, dashes, colons or underscores")

    @property
    def cause(self) -> str:
        """Cause of the record that the order becomes."""
        return f"operator/{self.key}"


def check_nudge(text: str, category: str) -> None:
    """Raise BadRequest for a nudge that cannot be delivered."""
    if not text.strip():
        raise BadRequest("the nudge is empty")
    if len(text) > NUDGE_LIMIT:
        raise BadRequest(f"the nudge has {len(text)} characters, {NUDGE_LIMIT} is the most")
    if category not in CATEGORIES:
        raise BadRequest(f"unknown category {category[:40]!r}", f"categories: {', '.join(CATEGORIES)}")
