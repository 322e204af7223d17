"""The event log of a run and the page of one record.

Invariant: both show what the journal holds, cleaned, and nothing of their own.
Not for: reading the journal (`console.sources`).
"""

from __future__ import annotations

from textual.app import ComposeResult

from console.app.screens.base import RunScreen
from console.app.session import Session
from console.app.widgets.lines import Block, LinesView
from console.app.widgets.log import EventLog
from console.app.widgets.rows import CursorView
from console.views import eventlog
from console.views.doc import Line, line, text_of


class LogScreen(RunScreen):
    """Every record, newest at the end."""

    name_shown = "events"

    def body(self) -> ComposeResult:
        """Lay out the log and its status line."""
        yield EventLog(self._line, id="events")
        yield Block(id="follow")

    def on_mount(self) -> None:
        """Give the log the keys."""
        super().on_mount()
        self.query_one(EventLog).focus()

    def paint(self) -> None:
        """Let the log grow."""
        self.query_one(EventLog).grow(self.session.state.seq)
        self.status()

    def status(self) -> None:
        """Say whether the log follows, and how much waits below."""
        log = self.query_one(EventLog)
        words = "following" if log.following else f"not following, {log.pending} new below (G goes there)"
        self.query_one("#follow", Block).show(lambda _: [line((words, "good" if log.following else "warn"))])

    def on_event_log_follow_changed(self) -> None:
        """Say so at once."""
        self.status()

    def on_cursor_view_opened(self, event: CursorView.Opened) -> None:
        """Open the record under the cursor."""
        event.stop()
        self.app.push_screen(RecordScreen(self.session, event.index + 1))

    def copied(self) -> str:
        """Copy the line under the cursor."""
        return text_of(self._line(self.query_one(EventLog).cursor + 1))

    def _line(self, seq: int) -> Line:
        record = self.session.record(seq)
        if record is None:
            return line((f"{seq:>6}  …", "muted"))
        return eventlog.log_line(record, start=self.session.state.started_ts)


class RecordScreen(RunScreen):
    """One record with all its data."""

    name_shown = "record"

    def __init__(self, session: Session, seq: int) -> None:
        super().__init__(session)
        self.seq = seq

    def body(self) -> ComposeResult:
        """Lay out the page."""
        yield LinesView(id="page")

    def on_mount(self) -> None:
        """Give the page the keys."""
        super().on_mount()
        self.query_one(LinesView).focus()

    def paint(self) -> None:
        """Paint the record once it is here."""
        record = self.session.record(self.seq)
        rows = [line((f"record {self.seq} is being fetched", "muted"))] if record is None else eventlog.page(record)
        self.query_one("#page", LinesView).show(lambda _: rows)

    def copied(self) -> str:
        """Copy the record."""
        return self.query_one("#page", LinesView).text()
