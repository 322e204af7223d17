"""From the name of a model client to the client.

Invariant: a name without a client is `UnknownClient` (exit 3) and says which exist; nothing falls back
to another client silently. Not for: the clients themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.clients.interface import ModelClient
from agents.clients.replay import ReplayClient
from agents.clients.scripted import ScriptedClient
from agents.clients.session import Session, load_session, session_path
from agents.errors import BadSession, UnknownClient

AVAILABLE = ("scripted", "replay")


def open_client(settings: Mapping[str, Any]) -> ModelClient:
    """The client that a run's configuration names.

    `settings` is the whole resolved configuration or its `[agents]` table: `model` (default `scripted`),
    `session` (`demo`, the name of a session of this package, or a path; default `demo`), and for `replay`
    the journal in `replay` (or in `session`).
    """
    table = settings.get("agents", settings)
    model = str(table.get("model") or "scripted")
    if model == "scripted":
        session = load_session(session_path(str(table.get("session") or "demo")))
        _require_fit(session, settings)
        return ScriptedClient(session)
    if model == "replay":
        return ReplayClient.open(_journal(table))
    raise UnknownClient(
        f"there is no model client `{model}` in this version; there are: {', '.join(AVAILABLE)}",
        "use `--model scripted --session FILE` (no key needed) or `--model replay` with a run's attempts.jsonl",
    )


def _require_fit(session: Session, settings: Mapping[str, Any]) -> None:
    problem = settings.get("run", {}).get("problem")
    if session.problem is not None and problem is not None and problem != session.problem:
        raise BadSession(
            f"the session `{session.name}` is written for {session.problem}, not for {problem}",
            "name a session written for it with `--session FILE`, or run it on that problem",
        )


def _journal(table: Mapping[str, Any]) -> Path:
    path = table.get("replay") or table.get("session")
    if not path:
        raise BadSession("the replay client needs a journal", "name the attempts.jsonl of a run with `--session`")
    return Path(str(path))
