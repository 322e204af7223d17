"""The attempts of an episode and the messages a model gets of them.

After a compaction the conversation begins anew with the task and a summary of the attempts before it.
Invariant: pure functions of task, attempts and schedule, so a rebuilt transcript asks the same.
Not for: judging attempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.bounds import clip
from agents.clients.interface import Message
from agents.episode.lifecycle import LifecycleEvent
from agents.episode.parsing import Parsed

SUMMARY_CHARS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One reply and what it was answered."""

    turn: int
    text: str
    parsed: Parsed
    feedback: str
    """What the model is told of it; empty for the reply that was submitted."""
    sha256: str | None = None
    """Of its code, where it was checked."""
    passed: bool = False
    """Whether CHECK found it right."""

    def view(self) -> dict[str, Any]:
        """The attempt as a trajectory keeps it."""
        return {
            "turn": self.turn,
            "action": self.parsed.action,
            "sha256": self.sha256,
            "passed_check": self.passed,
            "feedback": self.feedback,
        }


def messages(task: str, attempts: Sequence[Attempt], events: Sequence[LifecycleEvent]) -> tuple[Message, ...]:
    """The conversation before the next reply."""
    cuts = [e.before_reply for e in events if e.type == "compaction" and e.before_reply <= len(attempts)]
    start = max(cuts, default=0)
    first = task if start == 0 else f"{task}\n\n{summary(attempts[:start])}"
    conversation = [Message(role="user", text=first)]
    for attempt in attempts[start:]:
        conversation += [Message(role="assistant", text=attempt.text), Message(role="user", text=attempt.feedback)]
    return tuple(conversation)


def summary(attempts: Sequence[Attempt]) -> str:
    """What a compacted conversation keeps of the attempts: results, and the best code so far."""
    lines = ["# Summary of your earlier replies"]
    lines += [f"Reply {a.turn + 1} ({a.parsed.action or 'no action'}): {clip(a.feedback, 2_000)}" for a in attempts]
    kept = best(attempts) or next((a for a in reversed(attempts) if a.parsed.code is not None), None)
    if kept is not None and kept.parsed.code is not None:
        lines.append(f"Code of reply {kept.turn + 1}:\n```python\n{kept.parsed.code}```")
    return clip("\n\n".join(lines), SUMMARY_CHARS)


def best(attempts: Sequence[Attempt]) -> Attempt | None:
    """The last version that passed CHECK."""
    return next((a for a in reversed(attempts) if a.passed), None)
