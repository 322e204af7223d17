"""The world model document.

Invariant: shown as stored; it keeps its place when an edit arrives.
Not for: editing it.
"""

from __future__ import annotations

from textual.app import ComposeResult

from console.app.screens.base import RunScreen
from console.app.widgets.lines import LinesView
from console.views import world_model


class WorldModelScreen(RunScreen):
    """What the run believes."""

    name_shown = "world model"

    def body(self) -> ComposeResult:
        """Lay out the document."""
        yield LinesView(id="page")

    def on_mount(self) -> None:
        """Give the document the keys."""
        super().on_mount()
        self.query_one(LinesView).focus()

    def paint(self) -> None:
        """Paint the document."""
        self.query_one("#page", LinesView).show(lambda width: world_model.document(self.session.state, width=width))

    def copied(self) -> str:
        """Copy the document."""
        return self.session.state.world_model_text
