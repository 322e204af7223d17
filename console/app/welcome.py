"""What a console is opened on: a daemon's runs, one live run, or a journal.

Invariant: built before the app runs; the app asks it for sessions and never opens a source itself.
Not for: finding the daemon (`console.cli.link`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from console.app.screens.runs import ListRuns
from console.app.session import Session


@dataclass(slots=True, kw_only=True)
class Welcome:
    """How to open a session, and which one first."""

    session: Callable[[str], Session]
    """Builds the session of a run id."""
    place: str
    """Where the runs come from, in words."""
    live: bool
    run: str | None = None
    """Opened at once; None shows the list of runs."""
    list_runs: ListRuns | None = None
    """None where there is one run only."""
    failure: BaseException | None = None
    """Why the first run could not be opened."""
