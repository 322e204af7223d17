"""The help page: keys, glyphs, words.

Invariant: every glyph that a screen uses is explained here, from the same table that draws it.
Not for: what the footer shows (the bindings themselves).
"""

from __future__ import annotations

from collections.abc import Callable

from console.views import marks
from console.views.doc import BLANK, Line, Span, heading, line, pair, wrapped

KEYS = (
    ("↑ ↓ ← → or k j h l", "move"),
    ("space b, page keys", "move by page"),
    ("g G, home and end", "move to the ends"),
    ("enter", "open what the cursor is on"),
    ("esc", "go back"),
    ("1  2  3  4", "home, events, world model, runs"),
    ("[  ]", "in an experiment: the one before, the one after"),
    ("f", "in the events: follow, or stop following"),
    ("t", "show or hide the trend plot"),
    ("p", "pause after what is in flight, or resume"),
    ("n", "nudge: a message to the orchestrator"),
    ("s", "stop the run (asks first)"),
    ("y", "copy what is shown (to the clipboard, and to a file)"),
    ("ctrl+p", "every action by name"),
    ("F1 or ?", "this page"),
    ("q", "detach: the daemon and the run go on"),
)


def document(*, width: int) -> list[Line]:
    """Build the help page."""
    return [
        heading("keys"),
        *(pair(f"  {keys}", words, width=22) for keys, words in KEYS),
        BLANK,
        heading("glyphs"),
        _glyphs("status", "ok incorrect forbidden evaluator_error", marks.status),
        _glyphs("A/B", "faster slower unresolved", marks.decision),
        _glyphs("kept", "promoted banked refused", marks.retention),
        _glyphs("stage", "open building measuring reported reconciled", marks.stage),
        _glyphs("run", "running draining paused stopped finished failed", marks.run),
        BLANK,
        heading("words"),
        *wrapped(WORDS, width=width, indent="  "),
    ]


WORDS = """\
speed-up: reference time over candidate time, geometric mean over cases.
predicted and measured: champion's time over candidate's; above 1 is faster.
ρ: candidate's time over champion's in a symmetric A/B; below 1 is faster.
floor: what identical sources differ by on this device; below it nothing is believed.
requested, draining, paused: asked for; waiting for what is in flight; at rest.
naive claim: what one process with its own clock and a fixed input would have believed."""


def _glyphs(label: str, names: str, mark: Callable[[str], marks.Mark]) -> Line:
    spans = [span for name in names.split() for span in (mark(name).span, Span("  "))]
    return line((f"  {label:<8} ", "muted"), *spans)
