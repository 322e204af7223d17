"""The screens, driven by keys alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.app import copying
from console.app.app import Manners, RatchetApp
from console.app.screens.experiment import ExperimentScreen
from console.app.screens.guide import GuideScreen
from console.app.screens.home import HomeScreen
from console.app.screens.log import LogScreen, RecordScreen
from console.app.screens.prompts import ChoicePrompt, NudgePrompt
from console.app.screens.runs import RunsScreen
from console.app.screens.world_model import WorldModelScreen
from console.app.session import Session
from console.app.welcome import Welcome
from console.app.widgets.lines import Block, LinesView
from console.app.widgets.log import EventLog
from console.app.widgets.rows import RowList
from console.sources.base import Batch, Link
from console.sources.journal import JournalSource
from daemon.client import NotReachable
from state.events import Note, Record, RunStateChanged
from state.journal import Journal
from state.model import RunState
from state.reducer import fold
from tests.console import scenario


class FakeDaemon:
    """A live source and its control, fed by the test."""

    live = True
    place = "daemon /run/ratchet.sock"

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.batches: asyncio.Queue[Batch] = asyncio.Queue()
        self.asked: list[str] = []
        self.reachable = True

    async def open(self) -> RunState:
        return fold(self.records)

    async def follow(self, after: int) -> AsyncIterator[Batch]:
        while True:
            yield await self.batches.get()

    async def page(self, after: int, limit: int) -> list[Record]:
        if not self.reachable:
            raise NotReachable("no daemon answers")
        return self.records[after : after + limit]

    async def candidate(self, sha256: str) -> str | None:
        return "import torch  # \x1b[31mhostile[/] [bold]text"

    async def gauges(self) -> AsyncIterator[Mapping[str, Any]]:
        yield {"job": {"job": "kernel|builtin:scan|E7|1", "step": "timing", "done": 34, "total": 60}}

    async def close(self) -> None:
        self.asked.append("close")

    async def pause(self) -> int:
        return self._ask("pause")

    async def resume(self) -> int:
        return self._ask("resume")

    async def stop(self) -> int:
        return self._ask("stop")

    async def nudge(self, text: str) -> int:
        return self._ask(f"nudge {text}")

    def _ask(self, what: str) -> int:
        self.asked.append(what)
        return 99


def replayed(journal: Path) -> RatchetApp:
    return RatchetApp(Welcome(session=lambda _: Session(JournalSource(journal)), place=f"journal {journal}", live=False, run=scenario.RUN))


def live(daemon: FakeDaemon, *, demo: bool = False, run: str | None = scenario.RUN) -> RatchetApp:
    async def runs() -> list[dict[str, Any]]:
        return [
            {"run": scenario.RUN, "problem": "builtin:scan", "status": "running", "speedup": 2.41, "promotions": 2, "title": "demo"},
            {"run": "older", "problem": "builtin:mlp", "status": "finished", "speedup": 1.0, "promotions": 0, "title": "[b]x"},
        ]

    welcome = Welcome(session=lambda _: Session(daemon, daemon), place=daemon.place, live=True, run=run, list_runs=runs)
    return RatchetApp(welcome, manners=Manners(demo=demo))


@pytest.fixture
def daemon(tmp_path: Path) -> FakeDaemon:
    path = tmp_path / "d" / "attempts.jsonl"
    path.parent.mkdir()
    entries = [e for e in scenario.story() if e[0] not in ("run.control",) and not (e[0] == "run.state" and "draining" in str(e[2]))]
    return FakeDaemon(scenario.write_journal(path, entries))


async def until(pilot: Pilot[Any], true: Callable[[], bool]) -> None:
    """Let the app work until `true`; the test's own timeout is the limit."""
    async with asyncio.timeout(10):
        while not true():
            await pilot.pause(0.02)


def shown(app: RatchetApp, selector: str) -> str:
    return app.screen.query_one(selector, LinesView).text()


async def on_home(app: RatchetApp, pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: isinstance(app.screen, HomeScreen) and app.screen.query_one(RowList).line_count() == 7)


async def test_home_lists_experiments_and_enter_opens_one(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        assert shown(app, "#headline").splitlines()[1] == "baseline 1.83 ms  compiled 1.71 ms  champion 759 µs  speed-up 2.41×"
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, ExperimentScreen) and "decision ▲ faster" in shown(app, "#page"))
        assert shown(app, "#page").startswith("E6  Vectorised prefix in registers")
        assert "source b073b98568\nE6" in shown(app, "#page")
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "E5  Prefetch the next block" in shown(app, "#page"))
        await pilot.press("right_square_bracket", "right_square_bracket")
        await until(pilot, lambda: "E7  Two streams" in shown(app, "#page"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_arrows_and_letters_move_alike_and_stay_inside(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        table = app.screen.query_one(RowList)
        await pilot.press("down", "j", "k", "up", "up")
        assert table.cursor == 0
        await pilot.press("G")
        assert (table.cursor, table.key) == (6, "E1")
        await pilot.press("j", "end", "pagedown")
        assert table.cursor == 6
        await pilot.press("g")
        assert table.key == "E7"


async def test_number_keys_switch_views_and_escape_leads_home(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, WorldModelScreen))
        assert "- Reading [bold]past the end[/bold] does not pay." in shown(app, "#page")
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, GuideScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, GuideScreen))


async def test_log_follows_a_growing_journal_until_scrolled_up(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and app.screen.query_one(EventLog).line_count() == 78)
        log = app.screen.query_one(EventLog)
        assert log.following
        await pilot.press("k")
        assert not log.following
        moments = scenario.clock()
        with Journal.open(journal, run=scenario.RUN, clock=lambda: next(moments)) as writer:
            writer.append([("note", "daemon", Note(text="one more")), ("note", "daemon", Note(text="and another"))])
        await until(pilot, lambda: log.line_count() == 80)
        assert log.cursor == 76
        assert log.pending == 2
        await until(pilot, lambda: "not following, 2 new below" in shown(app, "#follow"))
        await pilot.press("G")
        assert log.following
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RecordScreen) and "and another" in shown(app, "#page"))


async def test_pause_flips_to_resume_and_both_are_asked_of_the_daemon(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        assert labels(app)["p"] == "Pause"
        await pilot.press("p")
        await until(pilot, lambda: daemon.asked == ["pause"])
        add(daemon, ("run.state", "daemon", RunStateChanged(state="paused")))
        await until(pilot, lambda: labels(app)["p"] == "Resume")
        await until(pilot, lambda: shown(app, "#headline").splitlines()[4].startswith("‖ paused"))
        await pilot.press("p")
        await until(pilot, lambda: daemon.asked == ["pause", "resume"])


async def test_a_nudge_is_typed_and_queued_and_its_letters_are_not_commands(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NudgePrompt))
        await pilot.press(*"pqs 12", "enter")
        await until(pilot, lambda: daemon.asked == ["nudge pqs 12"])
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NudgePrompt))
        await pilot.press("x", "escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        assert daemon.asked == ["nudge pqs 12"]


async def test_stopping_a_run_needs_a_letter_of_its_own(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, ChoicePrompt))
        await pilot.press("enter")
        assert isinstance(app.screen, ChoicePrompt)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        assert daemon.asked == []
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, ChoicePrompt))
        await pilot.press("s")
        await until(pilot, lambda: daemon.asked == ["stop"])


async def test_q_detaches_and_stops_nothing(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("q")
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == "detached"
    assert "stop" not in daemon.asked


@pytest.mark.parametrize(("key", "left"), [("d", "detached"), ("s", "stop")])
@pytest.mark.parametrize("leave", ["q", "ctrl+c"])
async def test_leaving_a_demo_asks(daemon: FakeDaemon, leave: str, key: str, left: str) -> None:
    app = live(daemon, demo=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press(leave)
        await until(pilot, lambda: isinstance(app.screen, ChoicePrompt))
        assert "stop the demo's daemon; the journal stays" in shown(app, "#choices")
        await pilot.press(key)
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == left


async def test_a_lost_link_shows_a_banner_and_keeps_the_screen(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        daemon.batches.put_nowait(Batch(link=Link(connected=False, detail="the daemon does not answer")))
        await until(pilot, lambda: "disconnected (the daemon does not answer)" in shown(app, "#banner"))
        assert app.screen.query_one(RowList).line_count() == 7
        assert "p" not in labels(app)
        daemon.batches.put_nowait(Batch(link=Link(connected=True)))
        await until(pilot, lambda: not app.screen.query_one("#banner", Block).display)
        assert labels(app)["p"] == "Pause"


async def test_an_experiment_that_cannot_be_fetched_keeps_its_page(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        daemon.reachable = False
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, ExperimentScreen) and "E6  Vectorised" in shown(app, "#page"))
        assert "decision" not in shown(app, "#page")
        daemon.reachable = True
        daemon.batches.put_nowait(Batch(link=Link(connected=True)))
        await until(pilot, lambda: "decision ▲ faster" in shown(app, "#page"))


async def test_a_replaced_journal_is_said_and_the_screen_stays(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        replace_by_a_shorter_one(journal)
        await until(pilot, lambda: "was replaced by another file" in shown(app, "#banner"))
        assert app.screen.query_one(RowList).line_count() == 7


async def test_gauges_show_how_far_a_job_is(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await until(pilot, lambda: "timing" in shown(app, "#headline"))
        assert "E7 evaluation: timing 34/60" in shown(app, "#headline")


async def test_runs_are_chosen_from_a_list(daemon: FakeDaemon) -> None:
    app = live(daemon, run=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.query_one(RowList).line_count() == 2)
        await pilot.press("enter")
        await on_home(app, pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert app.screen.query_one(RowList).line_count() == 2
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_what_others_wrote_is_never_markup_nor_an_escape(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(100, 40)) as pilot:
        await on_home(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ExperimentScreen) and "hostile[/] [bold]text" in shown(app, "#page"))
        assert "\x1b" not in shown(app, "#page")
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        lines = [app.screen._line(seq) for seq in range(1, 77)]
        assert not any("\x1b" in span.text for line in lines for span in line)


async def test_a_replay_offers_nothing_that_needs_a_daemon(journal: Path) -> None:
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        assert not {"p", "n", "4"} & set(labels(app))
        assert labels(app)["q"] == "Leave"
        await pilot.press("p", "n", "s", "4")
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("q")
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == "detached"


async def test_copy_goes_to_the_clipboard_and_to_a_private_file(journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying.platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    app = replayed(journal)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        await pilot.press("y")
        await until(pilot, lambda: "champion 759 µs" in app.clipboard)
    kept = tmp_path / "cache" / "copy.txt"
    assert "E6   Vectorised" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_every_action_is_in_the_command_palette(daemon: FakeDaemon) -> None:
    app = live(daemon)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_home(app, pilot)
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Home", "Events", "World model", "Runs", "Pause", "Nudge", "Stop the run", "Trend", "Help", "Detach"} <= titles
        assert "Resume" not in titles


async def test_bindings_have_ids_for_keymaps() -> None:
    classes = (RatchetApp, HomeScreen, ExperimentScreen, LogScreen, RowList, EventLog, LinesView)
    bindings = [b for cls in classes for b in cls.BINDINGS]
    assert [b for b in bindings if not b.id] == []


def replace_by_a_shorter_one(journal: Path) -> None:
    """Put another file in the journal's place."""
    other = journal.with_name("other")
    other.write_bytes(journal.read_bytes()[:-500])
    other.replace(journal)


def labels(app: RatchetApp) -> dict[str, str]:
    """What the footer offers now."""
    return {b.binding.key: b.binding.description for b in app.screen.active_bindings.values() if b.binding.show and b.enabled}


def add(daemon: FakeDaemon, entry: scenario.Entry) -> None:
    """Let the daemon journal one more record."""
    last = daemon.records[-1]
    record = Record(
        v=1,
        seq=last.seq + 1,
        ts=last.ts,
        run=last.run,
        kind=entry[0],
        actor=entry[1],
        data={"state": entry[2].state},
        prev=last.hash,
        hash="0" * 64,
    )
    daemon.records.append(record)
    daemon.batches.put_nowait(Batch(records=(record,)))
