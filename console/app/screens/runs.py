"""The runs of a daemon, to choose one.

Invariant: the list is the daemon's own, asked for again every few seconds while it is on top.
Not for: one run (`console.app.screens.home`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from console.app.widgets.lines import Block
from console.app.widgets.rows import GUTTER, CursorView, RowList
from console.errors import explain
from console.views import runs
from console.views.doc import Line, line

REFRESH_S = 2.0

ListRuns = Callable[[], Awaitable[Sequence[dict[str, Any]]]]


class RunsScreen(Screen[str]):
    """Choose a run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back", id="screen.back", show=False)]

    def __init__(self, list_runs: ListRuns, *, place: str) -> None:
        super().__init__()
        self._list_runs = list_runs
        self._place = place

    def compose(self) -> ComposeResult:
        """Lay out title, list, footer."""
        yield Block(id="title")
        yield Block(id="banner")
        yield Block(id="columns")
        yield RowList(id="runs")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Ask for the list, now and then."""
        self.query_one("#title", Block).show(lambda _: [line(("ratchet  ", "heading"), ("runs", "strong"), (f"  {self._place}", "muted"))])
        self.query_one("#columns", Block).show(lambda w: [(*line(" " * GUTTER), *runs.table_header(width=w - GUTTER - 1))])
        self.query_one(RowList).focus()
        self.ask()
        self.set_interval(REFRESH_S, self.ask)

    @work(exclusive=True)
    async def ask(self) -> None:
        """Ask the daemon for its runs."""
        try:
            rows = runs.rows(await self._list_runs())
        except Exception as error:
            known = explain(error)
            if known is None:
                raise
            self.query_one("#banner", Block).show(lambda _: [line((f"! {known.message}; trying again", "warn"))])
            return
        self.query_one("#banner", Block).show(lambda _: _none_yet(len(rows)))
        self.query_one(RowList).show_rows([r.run for r in rows], lambda width: [r.line(width=width) for r in rows])

    def on_cursor_view_opened(self, event: CursorView.Opened) -> None:
        """Take the run under the cursor."""
        event.stop()
        key = self.query_one(RowList).key
        if key is not None:
            self.dismiss(key)

    def action_back(self) -> None:
        """Return to the run that was open, if one was."""
        if len(self.app.screen_stack) > 2:
            self.dismiss(None)


def _none_yet(count: int) -> list[Line]:
    return [] if count else [line(("no runs yet: start one with `ratchet run PROBLEM`", "muted"))]
