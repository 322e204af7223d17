"""One experiment: prediction beside outcome, A/B, gate, evaluation, explanation, source, report.

Invariant: the page is rebuilt when the experiment's records changed and keeps its place.
Not for: laying the page out (`console.views.experiment`).
"""

from __future__ import annotations

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding

from console.app.screens.base import RunScreen
from console.app.session import Session
from console.app.widgets.lines import LinesView
from console.views import experiment as view
from console.views.doc import Line, line


class ExperimentScreen(RunScreen):
    """One experiment in full."""

    BINDINGS = [
        Binding("left_square_bracket", "step(-1)", "Older", id="experiment.older"),
        Binding("right_square_bracket", "step(1)", "Newer", id="experiment.newer"),
    ]
    name_shown = "experiment"

    def __init__(self, session: Session, experiment: str) -> None:
        super().__init__(session)
        self.experiment = experiment
        self._exhibits = view.Exhibits()
        self._fetched: tuple[str, int] | None = None

    def body(self) -> ComposeResult:
        """Lay out the page."""
        yield LinesView(id="page")

    def on_mount(self) -> None:
        """Give the page the keys."""
        super().on_mount()
        self.query_one(LinesView).focus()

    def paint(self) -> None:
        """Paint the page and fetch what it stands on when that changed."""
        self.query_one("#page", LinesView).show(self._page)
        found = self.session.state.experiments.get(self.experiment)
        now = (self.experiment, _stamp(self.session, self.experiment))
        if found is not None and now != self._fetched and self.session.link.connected:
            self._fetched = now
            self.fetch()

    @work(exclusive=True)
    async def fetch(self) -> None:
        """Fetch the records behind the experiment."""
        found = self.session.state.experiments.get(self.experiment)
        if found is not None:
            exhibits = await self.session.exhibits(found)
            if exhibits is None:
                self._fetched = None
                return
            self._exhibits = exhibits
            self.query_one("#page", LinesView).rebuild()

    def action_step(self, by: int) -> None:
        """Show the experiment opened before or after this one."""
        keys = sorted(self.session.state.experiments, key=lambda k: self.session.state.experiments[k].opened_seq)
        where = keys.index(self.experiment) + by if self.experiment in keys else 0
        if 0 <= where < len(keys):
            self.experiment, self._exhibits = keys[where], view.Exhibits()
            self.query_one("#page", LinesView).scroll_home(animate=False)
            self.paint()

    def copied(self) -> str:
        """Copy the page."""
        return self.query_one("#page", LinesView).text()

    def _page(self, width: int) -> list[Line]:
        found = self.session.state.experiments.get(self.experiment)
        if found is None:
            return [line((f"there is no experiment {self.experiment} in this run", "warn"))]
        return view.document(self.session.state, found, self._exhibits, width=min(width, 140))


def _stamp(session: Session, experiment: str) -> int:
    """A number that changes with every outcome and candidate of the experiment."""
    found = session.state.experiments.get(experiment)
    if found is None:
        return 0
    outcomes = (found.check, found.evaluation, found.robustness, found.verdict)
    return sum(o.seq for o in outcomes if o is not None) + len(found.candidates)
