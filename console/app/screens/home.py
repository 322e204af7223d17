"""The home of a run: headline, experiment table, trend.

Invariant: the table is a hypothesis log, and what stands behind a row is one key away.
Not for: one experiment (`console.app.screens.experiment`).
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical

from console.app.screens.base import RunScreen
from console.app.screens.experiment import ExperimentScreen
from console.app.widgets.lines import Block
from console.app.widgets.rows import GUTTER, CursorView, RowList
from console.app.widgets.trend import TrendPlot
from console.views import experiments, headline
from console.views.doc import Line, line
from console.views.trend import trend
from state.model import Alert


class HomeScreen(RunScreen):
    """One run at a glance."""

    BINDINGS = [Binding("escape", "back", "Back", show=False, id="screen.back")]
    name_shown = "home"

    def body(self) -> ComposeResult:
        """Lay out headline, table and plot."""
        yield Block(id="headline")
        with Horizontal(id="below"):
            with Vertical(id="log"):
                yield Block(id="columns")
                yield RowList(id="experiments")
            yield TrendPlot(id="trend")
        yield Block(id="alerts")

    def on_mount(self) -> None:
        """Give the table the keys."""
        super().on_mount()
        self.query_one(RowList).focus()

    def paint(self) -> None:
        """Paint everything from the state."""
        state, table = self.session.state, self.query_one(RowList)
        rows = experiments.rows(state)
        self.query_one("#headline", Block).show(lambda _: headline.headline(state, self.session.gauges))
        self.query_one("#columns", Block).show(lambda width: [_gutter(experiments.table_header(width=width - GUTTER - 1))])
        table.show_rows([row.id for row in rows], lambda width: [row.line(width=width) for row in rows])
        self.query_one("#alerts", Block).show(lambda _: alerts(self.session.state.alerts[-1:]))
        self.query_one(TrendPlot).show(trend(state))

    def on_cursor_view_opened(self, event: CursorView.Opened) -> None:
        """Open the experiment under the cursor."""
        key = self.query_one(RowList).key
        if key is not None:
            event.stop()
            self.app.push_screen(ExperimentScreen(self.session, key))

    def action_back(self) -> None:
        """Return to the list of runs, where there is one."""
        self.ratchet.action_runs()

    def copied(self) -> str:
        """Copy the headline and the table."""
        return "\n".join([self.query_one("#headline", Block).text(), self.query_one(RowList).text()])


def _gutter(row: Line) -> Line:
    return (*line(" " * GUTTER), *row)


def alerts(latest: list[Alert]) -> list[Line]:
    """Build the latest alert's line."""
    return [line((f"! {alert.level} at record {alert.seq}: ", "warn"), alert.text) for alert in latest]
