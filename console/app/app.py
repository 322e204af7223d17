"""The console's Textual application: which screen is on top, and what the keys of all screens do.

Invariant: leaving the console never stops work by itself; what stops something asks first and says
what goes on.
Not for: what a screen shows (`console.app.screens`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from console.app import copying
from console.app.palette import ENTRIES
from console.app.screens.guide import GuideScreen
from console.app.screens.home import HomeScreen
from console.app.screens.log import LogScreen
from console.app.screens.prompts import Choice, ChoicePrompt, NudgePrompt
from console.app.screens.runs import RunsScreen
from console.app.screens.world_model import WorldModelScreen
from console.app.session import Session
from console.app.welcome import Welcome
from console.app.widgets.trend import TrendPlot
from console.errors import explain
from console.sources.base import order

Left = Literal["detached", "stop"]
"""How the console was left: the work goes on, or its daemon is to be stopped."""

DETACH_OR_STOP = (
    Choice("d", "detach: the demo goes on in the background"),
    Choice("s", "stop the demo's daemon; the journal stays"),
)
OWN_WORDS = frozenset({"Quit", "Keys"})
"""Textual's commands that ours say in their own words."""
STOP_RUN = (Choice("s", "stop this run: what is in flight is ended unfinished; the journal stays, and `ratchet resume` goes on from it"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How this console behaves when it is left."""

    demo: bool = False
    """Ask whether to stop the daemon."""


VIEWS = Binding.Group("Views ", compact=True)


class RatchetApp(App[Left]):
    """One console."""

    TITLE = "ratchet"
    CSS_PATH = "ratchet.tcss"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "detach", "Detach", tooltip="The daemon and the run go on", id="app.detach"),
        Binding("q", "leave", "Leave", id="app.leave"),
        Binding("1", "home", "Home", tooltip="The run at a glance", group=VIEWS, id="app.home"),
        Binding("2", "events", "Events", tooltip="Every record of the journal", group=VIEWS, id="app.events"),
        Binding("3", "world_model", "World", tooltip="What the run believes", group=VIEWS, id="app.world_model"),
        Binding("4", "runs", "Runs", tooltip="Choose another run", group=VIEWS, id="app.runs"),
        Binding("p", "pause", "Pause", id="run.pause"),
        Binding("p", "resume", "Resume", id="run.resume"),
        Binding("n", "nudge", "Nudge", id="run.nudge"),
        Binding("s", "stop_run", "Stop", show=False, id="run.stop"),
        Binding("t", "trend", "Trend", show=False, id="app.trend"),
        Binding("f1,question_mark", "guide", "Help", id="app.help"),
    ]

    def __init__(self, welcome: Welcome, *, manners: Manners | None = None) -> None:
        super().__init__()
        self._welcome = welcome
        self._manners = manners or Manners()
        self.session: Session | None = None

    async def on_mount(self) -> None:
        """Open the run that was asked for, or the list of runs."""
        if self._welcome.run is not None:
            self.open_run(self._welcome.run)
        else:
            self.action_runs()

    @work(exclusive=True, group="session")
    async def open_run(self, run: str) -> None:
        """Open one run and follow it until another is opened."""
        session = self._welcome.session(run)
        try:
            await session.open()
        except Exception as error:
            self._refuse(error)
            return
        self.session = session
        self.switch_to(HomeScreen(session))
        try:
            await session.run()
        finally:
            await session.source.close()

    def _refuse(self, error: Exception) -> None:
        """Say why a run could not be opened; where it was the first one, leave with the reason."""
        known = explain(error)
        if known is None:
            raise error
        if self.session is not None:
            self.notify(f"{known.message}. {known.hint}", severity="error", markup=False)
            return
        self._welcome.failure = error
        self.exit("detached")

    def switch_to(self, screen: Screen[None]) -> None:
        """Make `screen` the one above the app's own."""
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) == 2:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what works now."""
        if isinstance(self.screen, (ChoicePrompt, NudgePrompt)):
            return action in ("command_palette", "quit", "help_quit")
        if action in ("detach", "leave"):
            return self._welcome.live == (action == "detach")
        if action in ("home", "events", "world_model", "trend"):
            return self.session is not None
        if action == "runs":
            return self._welcome.list_runs is not None
        if action in ("pause", "resume", "nudge", "stop_run"):
            return self._may(action)
        return True

    def _may(self, action: str) -> bool:
        session = self.session
        if session is None or session.control is None or not session.link.connected:
            return False
        state = session.state
        if action == "pause":
            return state.status == "running" and state.requested is None
        if action == "resume":
            return state.status in ("paused", "draining") or state.requested == "pause"
        return state.status not in ("stopped", "finished", "failed")

    def action_home(self) -> None:
        """Show the run at a glance."""
        if self.session is not None and not isinstance(self.screen, HomeScreen):
            self.switch_to(HomeScreen(self.session))

    def action_events(self) -> None:
        """Show every record."""
        if self.session is not None:
            self.switch_to(LogScreen(self.session))

    def action_world_model(self) -> None:
        """Show what the run believes."""
        if self.session is not None:
            self.switch_to(WorldModelScreen(self.session))

    def action_runs(self) -> None:
        """Choose another run."""
        if self._welcome.list_runs is not None and not isinstance(self.screen, RunsScreen):
            self.push_screen(RunsScreen(self._welcome.list_runs, place=self._welcome.place), self._chosen)

    def _chosen(self, run: str | None) -> None:
        if run is not None:
            self.open_run(run)

    def action_guide(self) -> None:
        """Show keys, glyphs and words."""
        if not isinstance(self.screen, GuideScreen):
            self.push_screen(GuideScreen(live=self._welcome.live))

    def action_trend(self) -> None:
        """Show or hide the trend plot."""
        for plot in self.screen.query(TrendPlot):
            plot.toggle_class("-shown")

    def action_pause(self) -> None:
        """Ask for a pause."""
        self.ask("pause")

    def action_resume(self) -> None:
        """Ask to go on."""
        self.ask("resume")

    @work
    async def action_stop_run(self) -> None:
        """Ask the run to end, after a confirmation."""
        if await self.push_screen_wait(ChoicePrompt("Stop this run?", STOP_RUN)) == "s":
            self.ask("stop")

    @work
    async def action_nudge(self) -> None:
        """Take a line to the orchestrator."""
        text = await self.push_screen_wait(NudgePrompt())
        if text:
            self.ask("nudge", text)

    @work
    async def ask(self, what: str, text: str = "") -> None:
        """Ask the daemon for something and say what came of it."""
        control = self.session.control if self.session else None
        if control is None:
            return
        try:
            seq = await order(control, what, text)
        except Exception as error:
            known = explain(error)
            if known is None:
                raise
            self.notify(f"{known.message}. {known.hint}", severity="error", markup=False)
            return
        self.notify(f"{what}: recorded as {seq}", markup=False, timeout=2.5)

    @work
    async def action_detach(self) -> None:
        """Leave; in a demo ask what should become of it."""
        if isinstance(self.screen, ChoicePrompt):
            return
        if self._manners.demo and self.session is not None and self.session.state.status not in ("finished", "failed", "stopped"):
            self.clear_notifications()
            answer = await self.push_screen_wait(ChoicePrompt("Leave the demo", DETACH_OR_STOP))
            if answer is None:
                return
            self.exit("stop" if answer == "s" else "detached")
        else:
            self.exit("detached")

    def action_leave(self) -> None:
        """Leave a replay; nothing goes on behind it."""
        self.exit("detached")

    async def action_quit(self) -> None:
        """Leave as `q` does."""
        self.action_detach()

    def action_help_quit(self) -> None:
        """Answer Ctrl-C: say what leaving does; in a demo, ask."""
        if self._manners.demo:
            self.action_detach()
        else:
            self.notify("q detaches: the daemon and the run go on. s stops the run." if self._welcome.live else "q leaves the replay.")

    def copy_out(self, text: str) -> None:
        """Copy to the clipboard and to a file, and say where."""
        self.copy_to_clipboard(text)
        self.notify(copying.saved(text), markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """List every action by name for the command palette."""
        yield from (c for c in super().get_system_commands(screen) if c.title not in OWN_WORDS)
        for entry in ENTRIES:
            if self.check_action(entry.action, ()):
                yield SystemCommand(entry.title, entry.words, getattr(self, f"action_{entry.action}"))
