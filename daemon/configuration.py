"""The configuration of a run: what was asked for, resolved against defaults, written to `run.toml`.

Tables: `[run]` what and where; `[evaluation]` how thorough, with one optional table of job options per
job kind (`[evaluation.ab]`); `[agents]` who proposes and how many.
Invariant: an unknown table or key is refused with near matches before anything is created; what is
written reads back as the same values.
Not for: options of a job; the judge knows those and names unknown ones.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents.settings import agent_settings
from daemon.errors import BadRequest
from evaluator.records import JobKind

QUALIFICATIONS = ("quick", "full")

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "run": {"problem": "", "title": "", "device": "cpu", "profile": "open"},
    "evaluation": {"qualification": "quick"},
    "agents": {
        "model": "scripted",
        "session": None,
        "replay": None,
        "n": 5,
        "workers_evaluate": True,
        "orchestrator_turns": 1000,
        "idea_turns": 20,
        "worker_turns": 60,
    },
}
"""Every key a run knows, with its default; None is left out of the file."""

_JOB_TABLES = tuple(kind.value for kind in JobKind)


def resolve(
    *,
    problem: str,
    model: str | None = None,
    session: str | None = None,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole configuration of a new run; BadRequest names what is unknown or of a wrong type."""
    given = {name: dict(_table(name, table)) for name, table in (settings or {}).items()}
    _known(given, DEFAULTS, what="table", where="settings")
    shortcuts = {"run": {"problem": problem, "title": title}, "agents": {"model": model, "session": session}, "evaluation": {}}
    resolved: dict[str, Any] = {}
    for name, defaults in DEFAULTS.items():
        table = given.get(name, {})
        allowed = (*defaults, *_JOB_TABLES) if name == "evaluation" else tuple(defaults)
        _known(table, allowed, what="key", where=f"settings.{name}")
        asked = {key: value for key, value in shortcuts[name].items() if value}
        resolved[name] = {key: value for key, value in {**defaults, **table, **asked}.items() if value is not None}
    _check(resolved)
    return resolved


def to_toml(config: Mapping[str, Any]) -> str:
    """`config` (tables of strings, numbers, booleans, lists and further tables) as TOML."""
    return "\n".join(_toml_lines(config, prefix=()))


def _check(config: Mapping[str, Any]) -> None:
    for key in ("problem", "title", "device", "profile"):
        if not isinstance(config["run"][key], str):
            raise BadRequest(f"settings.run.{key} must be text")
    if config["run"]["profile"] not in ("open", "seed"):
        raise BadRequest(f"settings.run.profile is {config['run']['profile']!r}", "profiles: open, seed")
    if config["evaluation"]["qualification"] not in QUALIFICATIONS:
        raise BadRequest(f"settings.evaluation.qualification is {config['evaluation']['qualification']!r}", "it is quick or full")
    for kind in _JOB_TABLES:
        _table(f"evaluation.{kind}", config["evaluation"].get(kind, {}))
    agent_settings(config)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRequest(f"settings.{name} must be a table")
    return value


def _known(given: Iterable[str], allowed: Iterable[str], *, what: str, where: str) -> None:
    names = sorted(allowed)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
            raise BadRequest(f"unknown {what} {name!r} in {where}", hint)


def _toml_lines(table: Mapping[str, Any], *, prefix: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items() if value is not None]
    for key, value in table.items():
        if isinstance(value, Mapping):
            path = (*prefix, key)
            lines += ["", f"[{'.'.join(_toml_key(part) for part in path)}]", *_toml_lines(value, prefix=path)]
    return [*lines, ""] if not prefix else lines


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL and for surrogate pairs, which ensure_ascii would write.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    raise BadRequest(f"a value of type {type(value).__name__} cannot be part of a configuration")
