"""The help page.

Invariant: reachable from every screen by F1 and `?`.
Not for: its text (`console.views.guide`).
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from console.app.widgets.lines import Block, LinesView
from console.views import guide
from console.views.doc import heading


class GuideScreen(Screen[None]):
    """Keys, glyphs and words."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,question_mark", "dismiss", "Back", id="screen.back")]

    def __init__(self, *, live: bool) -> None:
        super().__init__()
        self._live = live

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        yield Block(id="title")
        yield LinesView(id="page")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Paint it."""
        self.query_one("#title", Block).show(lambda _: [heading("ratchet  help")])
        page = self.query_one("#page", LinesView)
        page.show(lambda width: guide.document(width=width, live=self._live))
        page.focus()
