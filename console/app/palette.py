"""Every action by name, for the command palette.

Invariant: an entry names an action of the app, which is offered only while it works.
Not for: doing it (`console.app.app`).
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One action."""

    title: str
    words: str
    action: str


ENTRIES = (
    Entry("Home", "The run at a glance", "home"),
    Entry("Events", "Every record of the journal", "events"),
    Entry("World model", "What the run believes", "world_model"),
    Entry("Runs", "Choose another run", "runs"),
    Entry("Pause", "Pause after what is in flight", "pause"),
    Entry("Resume", "Go on", "resume"),
    Entry("Nudge", "A message to the orchestrator", "nudge"),
    Entry("Stop the run", "Asks first; the journal stays", "stop_run"),
    Entry("Trend", "Show or hide the trend plot", "trend"),
    Entry("Help", "Keys, glyphs and words", "guide"),
    Entry("Detach", "Leave the console; the daemon goes on", "detach"),
    Entry("Leave", "Leave the replay", "leave"),
)
