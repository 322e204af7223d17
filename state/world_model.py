"""WORLD_MODEL.md: the beliefs of a run as Markdown that a person can edit.

    ## Claims
    - [C3] exp dominates the loop (confidence 0.70; assert speedup@long in [1.2, 2]; evidence e2, e5; against e9)
      Lines indented below a claim are notes on it.
    ## Graveyard
    - [C1] fp16 slabs are accurate enough (confidence 0.10; against e4, e6; buried 479 of 640 certificates fail)
    ## Notes
    Anything, in any other section.

A claim begins with `-`, `*`, `+` or `###` and its id, and ends with its attributes in parentheses; it
may be wrapped over indented lines. `confidence` comes first; `assert` may be repeated; `external DATE`
marks a claim that rests on a web source alone. Everything else is text and is kept as it is.
Invariant: `render(parse(text)) == text` for every text that parses (LF ends), and
`parse(render(model)) == model`.
Not for: changing beliefs (`state.belief_changes`), comparing them with results (`state.belief_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from state.claim_text import CLAIM_HEAD, parse_claim, render_claim
from state.claims import Claim
from state.errors import LineLimit, WorldModelError

LINE_LIMIT = 250
"""Lines at which the document must be archived and distilled."""

LINE_CHARS = 2000
"""Longest line, so that the limit on lines means something."""

TITLES = {"claims": "## Claims", "graveyard": "## Graveyard", "notes": "## Notes"}

NEW_DOCUMENT = """\
# World model

## Claims

## Graveyard

## Notes
"""
"""What a run starts from."""

_HEADING = re.compile(r"#{1,2}\s+(.*?)\s*#*\s*")
_LIST_ITEM = re.compile(r"[-*+]\s")
_INDENTED = re.compile(r"[ \t]+\S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what is below it, up to the next one of the same or a higher level."""

    heading: str
    """The whole line; empty for what comes before the first heading."""
    items: tuple[Claim | str, ...] = ()
    """Claims, and other lines as they are."""

    @property
    def kind(self) -> str:
        """`claims`, `graveyard` or `text`."""
        match = _HEADING.fullmatch(self.heading)
        title = match[1].lower() if match else ""
        return title if title in ("claims", "graveyard") else "text"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims alone."""
        return tuple(item for item in self.items if isinstance(item, Claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldModel:
    """The whole document."""

    sections: tuple[Section, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Claims that are held, in the document's order."""
        return tuple(c for s in self.sections if s.kind == "claims" for c in s.claims)

    @property
    def graveyard(self) -> tuple[Claim, ...]:
        """Claims that were buried."""
        return tuple(c for s in self.sections if s.kind == "graveyard" for c in s.claims)

    def find(self, name: str) -> Claim | None:
        """The claim with this id, held or buried."""
        return next((c for c in (*self.claims, *self.graveyard) if c.id == name), None)


def parse(text: str) -> WorldModel:
    """Read a document; WorldModelError names the first line that is wrong and counts the others."""
    found: list[tuple[int, str]] = []
    sections = [_parse_section(number, lines, found) for number, lines in _split(text.replace("\r\n", "\n").split("\n"))]
    model = WorldModel(sections=tuple(sections))
    found += _doubled(model, text)
    if found:
        line, why = min(found)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise WorldModelError(why + more, line=line, hint="a claim reads `- [C7] sentence (confidence 0.60; evidence e2)`")
    return model


def render(model: WorldModel) -> str:
    """The document's text; claims that were not touched are written as they were read."""
    return "\n".join(line for section in model.sections for line in _section_lines(section))


def line_count(model: WorldModel) -> int:
    """Lines of the document as an editor counts them."""
    text = render(model)
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def check_limit(model: WorldModel, *, limit: int = LINE_LIMIT) -> None:
    """Raise LineLimit when the document has more than `limit` lines."""
    if (lines := line_count(model)) > limit:
        raise LineLimit(lines, limit)


def archive(model: WorldModel, names: Iterable[str], *, why: str) -> tuple[WorldModel, str]:
    """Take the named claims out; returns the shorter document and the text to keep in `archive/`."""
    wanted = set(names)
    taken = [claim for claim in (*model.claims, *model.graveyard) if claim.id in wanted]
    if missing := wanted - {claim.id for claim in taken}:
        raise WorldModelError(f"no claim {', '.join(sorted(missing))} to archive")
    kept = tuple(replace(s, items=tuple(i for i in s.items if not (isinstance(i, Claim) and i.id in wanted))) for s in model.sections)
    lines = ["# Archived claims", "", *why.splitlines(), "", *(line for claim in taken for line in render_claim(claim)), ""]
    return WorldModel(sections=kept), "\n".join(lines)


def _split(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Sections as (number of the first line, lines); the first may have no heading."""
    start = 0
    for i, line in enumerate(lines):
        if i > start and _HEADING.fullmatch(line):
            yield start + 1, lines[start:i]
            start = i
    yield start + 1, lines[start:]


def _parse_section(number: int, lines: list[str], found: list[tuple[int, str]]) -> Section:
    found += [(number + i, f"longer than {LINE_CHARS} characters") for i, line in enumerate(lines) if len(line) > LINE_CHARS]
    headed = bool(_HEADING.fullmatch(lines[0]))
    section = Section(heading=lines[0] if headed else "", items=tuple(lines[headed:]))
    if section.kind == "text":
        return section
    return replace(section, items=tuple(_parse_items(number + 1, lines[1:], found)))


def _parse_items(number: int, lines: list[str], found: list[tuple[int, str]]) -> Iterator[Claim | str]:
    i = 0
    while i < len(lines):
        block = [lines[i]]
        if CLAIM_HEAD.match(lines[i]):
            block += _indented_after(lines, i)
            try:
                yield parse_claim(block)
            except ValueError as error:
                found.append((number + i, str(error)))
        else:
            if _LIST_ITEM.match(lines[i]):
                found.append((number + i, "a list item here is a claim and needs an id, e.g. `- [C7] ...`"))
            yield lines[i]
        i += len(block)


def _indented_after(lines: list[str], i: int) -> list[str]:
    stop = i + 1
    while stop < len(lines) and _INDENTED.match(lines[stop]):
        stop += 1
    return lines[i + 1 : stop]


def _section_lines(section: Section) -> Iterator[str]:
    if section.heading:
        yield section.heading
    for item in section.items:
        if isinstance(item, str):
            yield item
        else:
            yield from render_claim(item)


def _doubled(model: WorldModel, text: str) -> Iterator[tuple[int, str]]:
    lines = text.replace("\r\n", "\n").split("\n")
    seen: set[str] = set()
    for claim in (*model.claims, *model.graveyard):
        if claim.id in seen:
            places = [i + 1 for i, line in enumerate(lines) if line == claim.source[0]]
            heads = [i + 1 for i, line in enumerate(lines) if f"[{claim.id}]" in line and CLAIM_HEAD.match(line)]
            yield (places or heads)[-1], f"claim {claim.id} is there twice (lines {', '.join(map(str, heads))})"
        seen.add(claim.id)
