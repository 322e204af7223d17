"""A list of rows with a cursor: runs, experiments.

Invariant: the cursor stays on its row's key when rows come and go around it.
Not for: rows that are read on demand (`console.app.widgets.log`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from console.app.widgets.lines import LinesView
from console.views.doc import Line

GUTTER = 2
"""Cells before each row, for the cursor's glyph."""


class CursorView(LinesView):
    """Lines with a cursor that opens the one it is on."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Open", key_display="enter", id="row.open")]
    cursor = reactive(0)

    class Opened(Message):
        """The row under the cursor is to be opened."""

        def __init__(self, view: CursorView, index: int) -> None:
            super().__init__()
            self.view = view
            self.index = index

        @property
        def control(self) -> CursorView:
            """The list it came from."""
            return self.view

    def validate_cursor(self, value: int) -> int:
        """Keep the cursor inside the lines."""
        return max(0, min(value, self.line_count() - 1))

    def watch_cursor(self) -> None:
        """Keep the cursor's row in sight."""
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()

    def paint(self, index: int) -> Strip:
        """Paint the gutter and the line, the cursor's row highlighted."""
        segments = [Segment("  "), *self.segments(self.line_at(index))]
        if index != self.cursor or index >= self.line_count():
            return Strip(segments)
        over = self.style_of("lines--cursor")
        marked = [Segment("› ", over), *(Segment(s.text, (s.style or over) + over) for s in segments[1:])]
        strip = Strip(marked)
        return strip.extend_cell_length(max(self.size.width, strip.cell_length), over)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row; open it when it was there already."""
        index = self.scroll_offset.y + event.y
        if index >= self.line_count():
            return
        if index == self.cursor:
            self.action_open()
        self.cursor = index

    def action_open(self) -> None:
        """Open the row under the cursor."""
        if self.line_count():
            self.post_message(self.Opened(self, self.cursor))

    def action_down(self) -> None:
        """Move a row down."""
        self.cursor += 1

    def action_up(self) -> None:
        """Move a row up."""
        self.cursor -= 1

    def action_page_down(self) -> None:
        """Move a page down."""
        self.cursor += max(self.size.height - 1, 1)

    def action_page_up(self) -> None:
        """Move a page up."""
        self.cursor -= max(self.size.height - 1, 1)

    def action_top(self) -> None:
        """Move to the first row."""
        self.cursor = 0

    def action_bottom(self) -> None:
        """Move to the last row."""
        self.cursor = self.line_count() - 1


class RowList(CursorView):
    """Rows known by a key."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: list[str] = []

    @property
    def key(self) -> str | None:
        """Key of the row under the cursor."""
        return self._keys[self.cursor] if self._keys else None

    def show_rows(self, keys: Sequence[str], build: Callable[[int], list[Line]]) -> None:
        """Replace the rows; the cursor follows its key."""
        old = self.key
        self._keys = list(keys)
        self.show(lambda width: build(max(width - GUTTER, 1)))
        if old in self._keys:
            self.cursor = self._keys.index(old)
        else:
            self.cursor = min(self.cursor, max(len(self._keys) - 1, 0))
