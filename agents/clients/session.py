"""Session files: what each scripted agent says and calls, with conditions on what it was answered.

A session is YAML: `version: 1`, `agents`, a map from agent id to steps, and perhaps the `problem` it is written for. A step is one of
`say`/`calls` (one reply; `calls` maps a label, which becomes the call's id, to `tool` and `input`),
`when`/`then`/`else`, or `until`/`do`/`at_most`. Only text is scripted: numbers come from answers.
Invariant: a session that loads is well-formed; every problem names the file and the step.
Not for: playing it (`clients.playing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents.clients.conditions import Condition, parse_condition
from agents.errors import BadSession

VERSION = 1
MAX_BYTES = 4 << 20
FOLDER = Path(__file__).resolve().parent.parent / "sessions"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call as written: strings inside `input` may hold templates."""

    label: str
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """One reply."""

    text: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class When:
    """A branch."""

    condition: Condition
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Until:
    """A loop: `body` is played until `condition` holds, at most `at_most` times."""

    condition: Condition
    body: tuple[Step, ...]
    at_most: int


Step = Say | When | Until


@dataclass(frozen=True, slots=True)
class Session:
    """One loaded session."""

    name: str
    title: str
    agents: Mapping[str, tuple[Step, ...]]
    problem: str | None = None
    """The only problem that it is written for; None: any."""


def session_path(name: str) -> Path:
    """Path of a session: a name without a suffix is one of this package's, anything else a file."""
    if name.endswith((".yml", ".yaml")) or "/" in name:
        return Path(name)
    path = FOLDER / f"{name}.yml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.yml")))
        raise BadSession(f"there is no session `{name}`", f"built in: {known}; or give the path of a .yml file")
    return path


def load_session(path: Path) -> Session:
    """Read and check one session file; source texts it names are read from beside it."""
    document = _document(path)
    reader = _Reader(path)
    agents = document.get("agents")
    if not isinstance(agents, dict) or not agents:
        raise reader.bad("agents", "must map agent ids to steps")
    steps = {str(agent): reader.steps(value, f"agents.{agent}") for agent, value in agents.items()}
    problem = document.get("problem")
    if problem is not None and not isinstance(problem, str):
        raise reader.bad("problem", "must be the key of a problem")
    return Session(name=path.stem, title=str(document.get("title", path.stem)), agents=steps, problem=problem)


def _document(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadSession(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(data) > MAX_BYTES:
        raise BadSession(f"{path}: {len(data)} bytes; a session has at most {MAX_BYTES}")
    try:
        document = yaml.safe_load(data.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadSession(f"{path}: is not YAML in UTF-8: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(document, dict):
        raise BadSession(f"{path}: is empty or not a mapping", "start with `version: 1` and `agents:`")
    version = document.get("version")
    if version != VERSION:
        raise BadSession(f"{path}: version {version!r}; this program reads version {VERSION}")
    return document


class _Reader:
    """Turns YAML into steps; knows the file for its messages and for the texts beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys = {"say": self._say, "calls": self._say, "when": self._when, "until": self._until}

    def bad(self, where: str, why: str) -> BadSession:
        return BadSession(f"{self._path}: {where}: {why}")

    def steps(self, value: Any, where: str) -> tuple[Step, ...]:
        if not isinstance(value, list):
            raise self.bad(where, "must be a list of steps")
        return tuple(self._step(item, f"{where}[{i}]") for i, item in enumerate(value))

    def _step(self, item: Any, where: str) -> Step:
        if isinstance(item, dict):
            for key, read in self._keys.items():
                if key in item:
                    return read(item, where)
        raise self.bad(where, "a step has `say`/`calls`, `when` or `until`")

    def _say(self, item: dict[str, Any], where: str) -> Step:
        self._only(item, {"say", "calls"}, where)
        calls = item.get("calls") or {}
        if not isinstance(calls, dict):
            raise self.bad(where, "`calls` maps a label to a call")
        planned = tuple(self._call(str(label), call, f"{where}.{label}") for label, call in calls.items())
        return Say(text=str(item.get("say", "")).strip(), calls=planned)

    def _call(self, label: str, call: Any, where: str) -> PlannedCall:
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            raise self.bad(where, "a call has `tool` and `input`")
        self._only(call, {"tool", "input"}, where)
        values = call.get("input") or {}
        if not isinstance(values, dict):
            raise self.bad(where, "`input` must be a mapping")
        return PlannedCall(label=label, tool=call["tool"], input={str(k): self._value(v, where) for k, v in values.items()})

    def _value(self, value: Any, where: str) -> Any:
        if isinstance(value, dict) and set(value) == {"file"}:
            return self._file(str(value["file"]), where)
        if isinstance(value, dict):
            return {str(k): self._value(v, where) for k, v in value.items()}
        if isinstance(value, list):
            return [self._value(v, where) for v in value]
        return value

    def _file(self, name: str, where: str) -> Any:
        try:
            return Verbatim((self._path.parent / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise self.bad(where, f"cannot read {name} ({error})") from error

    def _when(self, item: dict[str, Any], where: str) -> Step:
        self._only(item, {"when", "then", "else"}, where)
        condition = self._condition(item["when"], where)
        then = self.steps(item.get("then") or [], f"{where}.then")
        return When(condition=condition, then=then, otherwise=self.steps(item.get("else") or [], f"{where}.else"))

    def _until(self, item: dict[str, Any], where: str) -> Step:
        self._only(item, {"until", "do", "at_most"}, where)
        at_most = item.get("at_most", 100)
        if not isinstance(at_most, int) or at_most < 1:
            raise self.bad(where, "`at_most` must be a whole number from 1")
        body = self.steps(item.get("do") or [], f"{where}.do")
        return Until(condition=self._condition(item["until"], where), body=body, at_most=at_most)

    def _condition(self, value: Any, where: str) -> Condition:
        try:
            return parse_condition(value)
        except ValueError as error:
            raise self.bad(where, str(error)) from error

    def _only(self, item: dict[str, Any], known: set[str], where: str) -> None:
        if unknown := sorted(str(k) for k in set(item) - known):
            raise self.bad(where, f"unknown key `{unknown[0]}`; known: {', '.join(sorted(known))}")


class Verbatim(str):
    """A text read from a file: never searched for templates."""
