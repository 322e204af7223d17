"""What every screen of a run shares: title line, banner, footer, and the pace of painting.

Invariant: the screen is never cleared when the link is down; the banner says since which record.
Not for: what a screen shows between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from console.app.widgets.lines import Block
from console.views import numbers
from console.views.doc import Line, line

if TYPE_CHECKING:
    from console.app.app import RatchetApp
    from console.app.session import Session

PAINTS_PER_S = 10


class RunScreen(Screen[None]):
    """A screen over one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="screen.back"),
        Binding("y", "copy", "Copy", show=False, id="screen.copy"),
    ]
    name_shown = "run"
    """What the title line calls this screen."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._painted = -1

    @property
    def ratchet(self) -> RatchetApp:
        """The app, by its own type."""
        from console.app.app import RatchetApp  # the app imports its screens

        assert isinstance(self.app, RatchetApp)
        return self.app

    def compose(self) -> ComposeResult:
        """Lay out title, banner, body and footer."""
        yield Block(id="title")
        yield Block(id="banner")
        yield from self.body()
        yield Footer(compact=True)

    def body(self) -> ComposeResult:
        """Lay out what lies between banner and footer."""
        yield from ()

    def paint(self) -> None:
        """Paint the body from the session."""

    def on_mount(self) -> None:
        """Paint now and then at most ten times a second, when something changed."""
        self.repaint()
        self.set_interval(1 / PAINTS_PER_S, self.repaint)

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen was on top."""
        self._painted = -1
        self.repaint()

    def repaint(self) -> None:
        """Paint if the session changed since the last time."""
        if self._painted == self.session.version:
            return
        self._painted = self.session.version
        self.query_one("#title", Block).show(lambda _: [title_line(self.session, self.name_shown)])
        self.query_one("#banner", Block).show(lambda _: banner(self.session))
        self.paint()
        self.refresh_bindings()

    def action_back(self) -> None:
        """Return to the screen before."""
        self.app.pop_screen()

    def action_copy(self) -> None:
        """Copy what is shown."""
        self.ratchet.copy_out(self.copied())

    def copied(self) -> str:
        """What `y` copies."""
        return self.session.state.run


def title_line(session: Session, shown: str) -> Line:
    """Build the first line: the run, where it comes from, how far it is."""
    kind = ("live", "good") if session.live else ("replay", "accent")
    if session.live and not session.link.connected:
        kind = ("last seen", "warn")
    return line(
        ("ratchet  ", "heading"),
        (session.state.run or "no run", "strong"),
        "  ",
        kind,  # type: ignore[arg-type]
        (f"  {shown}  record {session.state.seq}", "muted"),
    )


def banner(session: Session) -> list[Line]:
    """Build the line that says the link is down; nothing while it is up."""
    if session.link.connected:
        return []
    why = f" ({session.link.detail})" if session.link.detail else ""
    since = numbers.offset(session.state.started_ts, session.state.last_ts)
    return [line((f"! disconnected{why}: showing record {session.state.seq} of {since}; trying again", "warn"))]
