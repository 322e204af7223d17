"""The controls as records: what each is, what it must get, and its text.

Invariant: a control's text is complete (nothing is imported from here when it runs), and every name in
the table has its file.
Not for: running them (`evaluator.qualification.runner`).
"""

from __future__ import annotations

import difflib
import enum
import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evaluator.errors import UsageError
from evaluator.records import Result, Source, Status

_HERE = Path(__file__).parent
_BASE = re.compile(r"^# @base$", re.MULTILINE)
_NATIVE = re.compile(r"^# @native (\w+)$", re.MULTILINE)


class Believes(enum.StrEnum):
    """What the naive evaluator must do with a control."""

    CREDITS = "credits"
    """Call it right with a speed-up of at least 1.5, or call a wrong output right: the control is an exploit."""
    CREDITS_OUTSIDE = "credits outside a sandbox"
    """The same, but the sandbox that our naive evaluator runs in stops it too: the measurement that ships with it counts."""
    NOTHING = "nothing"
    """Not asked: the control shows a refusal or an honest kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one evaluation may come to."""

    statuses: frozenset[Status]
    """`ok` in here means correct at any speed."""
    max_gain: float | None = None
    """Where set, `ok` is accepted up to this speed-up."""

    def accepts(self, result: Result) -> bool:
        """Whether a result is one of those."""
        if result.status is not Status.OK:
            return result.status in self.statuses
        if self.max_gain is None:
            return Status.OK in self.statuses
        speedup = result.evaluation.speedup if result.evaluation else None
        return speedup is not None and speedup <= self.max_gain

    @property
    def words(self) -> str:
        """For records and screens."""
        gain = [f"gain <= {self.max_gain:.2f}x"] if self.max_gain is not None else []
        names = sorted(s.value for s in self.statuses if not (gain and s is Status.OK))
        return " or ".join([*names, *gain])


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One qualification control."""

    id: str
    family: str
    catalogue: tuple[str, ...]
    """Rows of the catalogue of known exploits that it covers."""
    mechanism: str
    profile: str
    problem: str
    gate_on: Expectation
    gate_off: Expectation
    naive: Believes
    quick: bool
    """In the quick subset: one a family."""
    options: dict[str, Any]
    """Job options, e.g. a shorter `timeout_s`."""

    file: str
    """Name of its source under `controls/`."""

    @property
    def is_exploit(self) -> bool:
        """Whether it counts only where a naive evaluator is taken in."""
        return self.naive is not Believes.NOTHING

    @property
    def text(self) -> str:
        """The candidate's source, complete."""
        return source_text(self.file)

    @property
    def source(self) -> Source:
        """As a job carries it."""
        text = self.text
        return Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


@functools.cache
def controls() -> tuple[Control, ...]:
    """Every control, in the table's order."""
    data = yaml.safe_load((_HERE / "controls.yaml").read_text(encoding="utf-8"))
    return tuple(_control(row, data["defaults"]) for row in data["controls"])


def subset(*, quick: bool) -> tuple[Control, ...]:
    """The controls of a qualification."""
    return tuple(c for c in controls() if c.quick or not quick)


def chosen_controls(names: Sequence[str] | None, *, quick: bool) -> tuple[Control, ...]:
    """The named controls in the table's order, or the whole subset; an unknown name is a UsageError with near ones."""
    if not names:
        return subset(quick=quick)
    known = {control.id: control for control in controls()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=3)
            raise UsageError(f"no control {name!r}", f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}")
    return tuple(control for control in controls() if control.id in names)


@functools.cache
def source_text(name: str) -> str:
    """Text of one control with its `# @base` and `# @native` lines replaced by what they stand for."""
    text = _read(f"{name}.py")
    text = _BASE.sub(lambda _: _read("base.py").rstrip(), text)
    return _NATIVE.sub(lambda found: _native(found[1]), text)


def _native(name: str) -> str:
    """The load_inline call of a shared native source; its first two lines name functions and flags.

    One text for all controls that use it, so that it is built once.
    """
    text = _read(f"{name}.cpp")
    functions, flags = (line.split(":", 1)[1].split() for line in text.splitlines()[:2])
    call = f'{name} = load_inline(name="control_{name}", functions={functions!r}, extra_cflags={flags!r}, cpp_sources=r"""'
    lines = ["from torch.utils.cpp_extension import load_inline", "", call, text + '""")']
    return "\n".join(lines)


def native_flags() -> list[tuple[str, ...]]:
    """Every set of compiler flags that a control's native source is built with."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((_HERE / "controls").glob("*.cpp"))]
    return list(dict.fromkeys(tuple(text.splitlines()[1].split(":", 1)[1].split()) for text in texts))


def _read(file: str) -> str:
    return (_HERE / "controls" / file).read_text(encoding="utf-8")


def _control(row: dict[str, Any], defaults: dict[str, Any]) -> Control:
    row = {**defaults, **row}
    on = _expectation(row["gate_on"])
    return Control(
        id=row["id"],
        family=row["family"],
        catalogue=tuple(row["catalogue"]),
        mechanism=row["mechanism"],
        profile=row["profile"],
        problem=row["problem"],
        gate_on=on,
        gate_off=_expectation(row["gate_off"]) if "gate_off" in row else on,
        naive=Believes(row["naive"]),
        quick=row["quick"],
        options=dict(row["options"]),
        file=row.get("file", row["id"]),
    )


def _expectation(words: str) -> Expectation:
    """`tampered incorrect gain<=1.02` as an expectation."""
    statuses, gain = set(), None
    for word in words.split():
        if word.startswith("gain<="):
            gain = float(word.removeprefix("gain<="))
        else:
            statuses.add(Status(word))
    return Expectation(statuses=frozenset(statuses), max_gain=gain)
