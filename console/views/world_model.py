"""The world model document as a screen shows it.

Invariant: the text is shown as it is stored, cleaned, never parsed as markup.
Not for: parsing claims (`state.world_model`).
"""

from __future__ import annotations

from console.views.doc import BLANK, Line, Tone, line, wrapped
from state.model import RunState

LINE_LIMIT = 250
"""Lines at which the orchestrator must distil the document."""


def document(state: RunState, *, width: int) -> list[Line]:
    """Build the gauge and the document, wrapped to `width`."""
    if not state.world_model_text:
        return [line(("nobody has written to the world model yet", "muted"))]
    edits = len(state.world_model_history)
    gauge = line(
        ("world model  ", "heading"),
        (f"{state.world_model_lines} of {LINE_LIMIT} lines", "warn" if state.world_model_lines > LINE_LIMIT else "plain"),
        (f"  {edits} edits  sha256 {state.world_model_sha256[:10]}", "muted"),
    )
    text = state.world_model_text.rstrip("\n").split("\n")
    return [gauge, BLANK, *(piece for row in text for piece in wrapped(row, width=width, tone=_tone(row)))]


def _tone(row: str) -> Tone:
    if row.startswith("#"):
        return "heading"
    return "accent" if row.lstrip().startswith(("- [", "* [")) else "plain"
