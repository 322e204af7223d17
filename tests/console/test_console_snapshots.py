"""Pictures of the screens at two sizes; the fixture's moments are fixed, so a picture changes only with the code.

Kept for one version of Textual, the pinned one. After a wanted change: `pytest tests/console --snapshot-update`, and look at every picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.app.app import RatchetApp
from console.app.session import Session
from console.app.welcome import Welcome
from console.app.widgets.lines import LinesView
from console.sources.journal import JournalSource
from tests.console import scenario

SIZES = [(80, 24), (140, 45)]
SCREENS = {
    "home": ((), "E1"),
    "experiment": (("j", "enter"), "slot bias"),
    "refused": (("j", "j", "j", "enter"), "naive evaluator"),
    "events": (("2",), None),
    "record": (("2", "enter"), "draining"),
    "world_model": (("3",), "Graveyard"),
    "help": (("f1",), "keys"),
}


def app_on(journal: Path) -> RatchetApp:
    return RatchetApp(Welcome(session=lambda _: Session(JournalSource(journal)), place="journal", live=False, run=scenario.RUN))


def settle(keys: tuple[str, ...], words: str | None) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Press `keys` once the run is open, and wait for `words` and for nothing to be left to paint."""

    async def work(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, RatchetApp)
        async with asyncio.timeout(20):
            while app.session is None or not app.screen.query("#experiments"):
                await pilot.pause(0.02)
            for key in keys:
                await pilot.press(key)
            while words is not None and not any(words in view.text() for view in app.screen.query(LinesView)):
                await pilot.pause(0.02)
            await pilot.pause(0.3)

    return work


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("screen", SCREENS)
def test_screen(screen: str, size: tuple[int, int], journal: Path, snap_compare: Callable[..., bool]) -> None:
    keys, words = SCREENS[screen]
    assert snap_compare(app_on(journal), terminal_size=size, run_before=settle(keys, words))


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
def test_home_in_other_themes(theme: str, journal: Path, snap_compare: Callable[..., bool]) -> None:
    app = app_on(journal)
    app.theme = theme
    assert snap_compare(app, terminal_size=(80, 24), run_before=settle((), "E1"))


def test_home_without_colour(journal: Path, snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_on(journal), terminal_size=(80, 24), run_before=settle((), "E1"))
