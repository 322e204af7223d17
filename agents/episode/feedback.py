"""What the model is told after a reply that was not submitted.

Invariant: compiler output, mismatches and hints; never a time or a speed. Bounded and plain.
Not for: the official report.
"""

from __future__ import annotations

from agents.bounds import clip, plain
from agents.episode.lifecycle import REPLIES
from agents.episode.parsing import Parsed
from evaluator.records import Result, Status

LOG_CHARS = 6_000


def format_feedback(parsed: Parsed, *, turn: int) -> str:
    """For a reply that could not be acted on."""
    return f"Your reply could not be used: {'; '.join(parsed.problems)}.\n{_left(turn)}"


def check_feedback(result: Result, *, turn: int) -> str:
    """For a reply that was checked."""
    if result.status is Status.OK:
        return f"CHECK passed: it builds and its outputs are right on fresh inputs.\n{_left(turn)}"
    lines = [f"CHECK failed ({result.status.value}): {plain(result.message)}"]
    if result.evaluation is not None:
        lines += [f"- {c.case}: {plain(c.detail)}" for c in result.evaluation.checks if not c.correct]
    lines += [f"Hint: {plain(result.hint)}"] if result.hint else []
    lines += [f"Output:\n{clip(plain(result.log), LOG_CHARS)}"] if result.log else []
    return "\n".join([*lines, _left(turn)])


def _left(turn: int) -> str:
    left = REPLIES - 1 - turn
    return f"{left} of {REPLIES} replies left." + (" The next one is submitted as it is." if left == 1 else "")
