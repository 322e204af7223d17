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
    ("q", "leave: a daemon and its runs go on (the demo asks)"),
)


LIVE_KEYS = frozenset({"p", "n", "s"})
"""What only a run that a daemon drives has."""


def document(*, width: int, live: bool = True) -> list[Line]:
    """Build the help page."""
    return [
        heading("keys"),
        *(pair(f"  {keys}", words, width=22) for keys, words in KEYS if live or keys not in LIVE_KEYS),
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
speed-up: reference time over candidate time, geometric mean over cases. Both are timed in turn within one evaluation, so it need \
not be the baseline over the champion of the headline, which were timed minutes apart.
predicted and measured: champion's time over candidate's; above 1 is faster.
ρ: candidate's time over champion's in a symmetric A/B; below 1 is faster.
floor: what identical sources differ by on this device; below it nothing is believed.
start: both sides of an A/B run in new processes several times; two processes of one source differ.
slot bias c: how much slower whatever runs first is; it cancels out of ρ.
slack: what a runner could save a call without computing any faster; bound: the speed-up if all of it was won.
void: a pair of blocks that was not quiet, left out before its times were read.
fast_1: not slower for certain, the slack charged; raw: by the point alone.
rung: 1 a single evaluation, 2 the best of several, 3 a symmetric A/B.
refused: not believed, with the reason; beside it what a naive evaluator would have claimed.
banked: right, but not faster beyond doubt; kept for a later combination.
requested, draining, paused: asked for; waiting for what is in flight; at rest.
stopped: ended by you; `ratchet resume` takes it up again. finished: the search is over.
lease: one measurement at a time has a device; the others wait for it.
naive claim: what one process with its own clock and a fixed input would have believed."""


def _glyphs(label: str, names: str, mark: Callable[[str], marks.Mark]) -> Line:
    spans = [span for name in names.split() for span in (mark(name).span, Span("  "))]
    return line((f"  {label:<8} ", "muted"), *spans)
