"""Statuses, decisions and stages as a glyph, a word and a tone.

Invariant: glyph and word alone tell the status; the tone only helps the eye. An unknown status is
shown by its own name.
Not for: deciding a status.
"""

from __future__ import annotations

from typing import NamedTuple

from console.views.doc import Span, Tone
from state.model import Experiment, Outcome

REFUSED = frozenset({"forbidden", "tampered", "no_custom_kernel"})
"""Statuses that say: this was not an honest candidate."""


class Mark(NamedTuple):
    """How one status looks."""

    glyph: str
    word: str
    tone: Tone

    @property
    def text(self) -> str:
        """Glyph and word."""
        return f"{self.glyph} {self.word}"

    @property
    def span(self) -> Span:
        """Glyph and word, toned."""
        return Span(self.text, self.tone)


_STATUS = {
    "ok": Mark("✓", "ok", "good"),
    "incorrect": Mark("✗", "incorrect", "bad"),
    "compile_error": Mark("✗", "compile error", "bad"),
    "runtime_error": Mark("✗", "runtime error", "bad"),
    "timeout": Mark("✗", "timeout", "bad"),
    "forbidden": Mark("⊘", "forbidden", "bad"),
    "tampered": Mark("⊘", "tampered", "bad"),
    "no_custom_kernel": Mark("⊘", "no custom kernel", "bad"),
    "evaluator_error": Mark("!", "evaluator error", "warn"),
}
_DECISION = {
    "faster": Mark("▲", "faster", "good"),
    "slower": Mark("▼", "slower", "bad"),
    "unresolved": Mark("≈", "unresolved", "warn"),
}
_RETENTION = {
    "none": Mark("·", "none", "muted"),
    "banked": Mark("◆", "banked", "accent"),
    "promoted": Mark("★", "promoted", "good"),
    "refused": Mark("⊘", "refused", "bad"),
}
_STAGE = {
    "open": Mark("○", "open", "muted"),
    "building": Mark("◔", "building", "accent"),
    "measuring": Mark("◑", "measuring", "accent"),
    "reported": Mark("◕", "reported", "plain"),
    "reconciled": Mark("●", "reconciled", "plain"),
}
_RUN = {
    "new": Mark("○", "new", "muted"),
    "running": Mark("▶", "running", "good"),
    "draining": Mark("◑", "draining", "warn"),
    "paused": Mark("‖", "paused", "warn"),
    "stopping": Mark("◑", "stopping", "warn"),
    "stopped": Mark("■", "stopped", "warn"),
    "finished": Mark("●", "finished", "good"),
    "failed": Mark("✗", "failed", "bad"),
}


def status(name: str) -> Mark:
    """Return the mark of a job's status."""
    return _STATUS.get(name, Mark("?", name, "warn"))


def decision(name: str) -> Mark:
    """Return the mark of an A/B's decision."""
    return _DECISION.get(name, Mark("?", name, "warn"))


def retention(name: str) -> Mark:
    """Return the mark of what became of an experiment's candidate."""
    return _RETENTION.get(name, Mark("?", name, "warn"))


def stage(name: str) -> Mark:
    """Return the mark of an experiment's stage."""
    return _STAGE.get(name, Mark("?", name, "plain"))


def run(name: str) -> Mark:
    """Return the mark of a run's state."""
    return _RUN.get(name, Mark("?", name, "warn"))


def passed(value: bool) -> Mark:
    """Return the mark of one check."""
    return Mark("✓", "passed", "good") if value else Mark("✗", "failed", "bad")


def of_experiment(experiment: Experiment) -> Mark:
    """Return the one mark that says most about an experiment now."""
    if experiment.retention in ("promoted", "banked"):
        return retention(experiment.retention)
    latest = last_outcome(experiment)
    if latest is None:
        return Mark("○", "no result yet", "muted")
    if latest.status != "ok":
        return status(latest.status)
    if latest.kind == "ab" and latest.decision:
        return decision(latest.decision)
    if latest.kind == "check":
        return Mark("✓", "check ok", "good")
    if latest.passed is False:
        return Mark("✗", "not robust", "bad")
    return status("ok")


def last_outcome(experiment: Experiment) -> Outcome | None:
    """Return the outcome of the experiment's latest finished job."""
    found = [o for o in (experiment.check, experiment.evaluation, experiment.robustness, experiment.verdict) if o is not None]
    return max(found, key=lambda o: o.seq, default=None)
