"""The event log: one line a record, read on demand, with follow.

Invariant: only visible records are fetched and painted; scrolling up ends follow, and what arrives
meanwhile is counted, never jumped to.
Not for: the page of one record (`console.app.screens.record`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from console.app.widgets.rows import CursorView
from console.views.doc import Line

WIDTH = 500
"""Cells that a line may take when scrolled sideways."""


class EventLog(CursorView):
    """Every record of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("f", "follow", "Follow", id="log.follow")]
    following = reactive(True, init=False)

    class FollowChanged(Message):
        """Follow went on or off."""

    def __init__(self, line_of: Callable[[int], Line], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._line_of = line_of
        self._count = 0
        self._seen = 0

    @property
    def pending(self) -> int:
        """Records that arrived since follow went off."""
        return 0 if self.following else self._count - self._seen

    def grow(self, count: int) -> None:
        """Take note that there are `count` records now."""
        self._count = count
        if self.following:
            self._seen = count
        self.resized_to(count, WIDTH)
        if self.following:
            self.cursor = count - 1

    def rebuild(self) -> None:
        """Lay out for a new width."""
        self.resized_to(self._count, WIDTH)

    def line_count(self) -> int:
        """How many records there are."""
        return self._count

    def line_at(self, index: int) -> Line:
        """The line of the record with seq `index` + 1."""
        return self._line_of(index + 1) if 0 <= index < self._count else ()

    def watch_cursor(self) -> None:
        """Leave follow when the cursor leaves the last record."""
        super().watch_cursor()
        self.following = self._count == 0 or self.cursor >= self._count - 1

    def watch_following(self) -> None:
        """Tell the screen."""
        self._seen = self._count
        self.post_message(self.FollowChanged())

    def action_follow(self) -> None:
        """Go to the end and stay there; or stay here."""
        if self.following:
            self.following = False
        else:
            self.action_bottom()
