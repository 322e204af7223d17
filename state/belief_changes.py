"""Changes of the world model that a model asks for, applied under the rules.

The change types are tagged by `action`, so a tool's JSON input converts straight into them:
`{"action": "revise", "claim": "C3", "confidence": 0.4, "why": "...", "against": ["e9"]}`.
Invariant: all changes of a call are applied or none; every moved confidence is in the returned list;
the document never grows beyond its line limit; a refuted claim only rises on evidence it did not have.
Not for: a person's edits, which are the file itself (`state.world_model.parse` checks them).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from state.belief_rules import DEMOTED, REFUTED_BELOW, map_claims, refuted
from state.claim_text import one_line
from state.claims import CLAIM_ID, Assertion, Claim, parse_assertion
from state.errors import LineLimit, WorldModelError
from state.events import ClaimChange
from state.world_model import LINE_LIMIT, TITLES, Section, WorldModel, line_count, parse, render


class AddClaim(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="add"):
    """A new belief."""

    sentence: str
    confidence: float
    assertions: list[str] = []
    """`speedup@long in [1.2, 2.0]`, `speedup@short > 1`."""
    evidence: list[str] = []
    claim: str | None = None
    """Its id; the next free one when left out."""
    external: str = ""
    """Date of the web source when it rests on that alone."""
    why: str = ""


class ReviseClaim(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="revise"):
    """Another confidence, wording or evidence for a claim; what is left out stays."""

    claim: str
    why: str
    confidence: float | None = None
    sentence: str | None = None
    assertions: list[str] | None = None
    evidence: list[str] = []
    """Added to what supports it."""
    against: list[str] = []
    """Added to what contradicts it."""


class BuryClaim(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="bury"):
    """Move a claim to the graveyard."""

    claim: str
    why: str
    confidence: float = 0.1
    against: list[str] = []


class ReopenClaim(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="reopen"):
    """Take a claim out of the graveyard on new evidence."""

    claim: str
    why: str
    confidence: float
    evidence: list[str]


class WriteNotes(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="notes"):
    """Replace the free notes: how they are distilled."""

    text: str


Change = AddClaim | ReviseClaim | BuryClaim | ReopenClaim | WriteNotes


def apply_changes(
    model: WorldModel,
    changes: Sequence[Change],
    *,
    roots: Mapping[str, frozenset[str]] | None = None,
    limit: int = LINE_LIMIT,
) -> tuple[WorldModel, list[ClaimChange]]:
    """The changed document and what moved.

    `roots` says which experiments are not independent (`belief_rules.roots_of`). Raises WorldModelError
    for a change that is refused and LineLimit when the document would be over `limit` and did not shrink.
    """
    before = line_count(model)
    moved: list[ClaimChange] = []
    for change in changes:
        model, one = _apply(model, change, roots or {})
        moved += [one] if one is not None else []
    model = parse(render(model))
    after = line_count(model)
    if after > limit and after >= before:
        raise LineLimit(after, limit)
    return model, moved


def next_claim_id(model: WorldModel) -> str:
    """`C<n>`, one above the highest there is."""
    numbers = [int(c.id[1:]) for c in (*model.claims, *model.graveyard) if c.id[0] in "Cc" and c.id[1:].isdigit()]
    return f"C{max(numbers, default=0) + 1}"


def _apply(model: WorldModel, change: Change, roots: Mapping[str, frozenset[str]]) -> tuple[WorldModel, ClaimChange | None]:
    if isinstance(change, WriteNotes):
        return _write_notes(model, change.text), None
    if isinstance(change, AddClaim):
        return _add(model, change)
    if isinstance(change, ReviseClaim):
        return _revise(model, change, roots)
    if isinstance(change, BuryClaim):
        return _bury(model, change)
    return _reopen(model, change)


def _add(model: WorldModel, change: AddClaim) -> tuple[WorldModel, ClaimChange]:
    name = change.claim or next_claim_id(model)
    if not CLAIM_ID.fullmatch(name):
        raise WorldModelError(f"{name[:40]!r} is not a claim id", hint="letters and a number, e.g. C7")
    if model.find(name) is not None:
        raise WorldModelError(f"claim {name} is already there", hint="revise it, or leave the id out")
    claim = Claim(
        id=name,
        sentence=_sentence(change.sentence),
        confidence=_confidence(change.confidence),
        assertions=_assertions(change.assertions),
        evidence=_references(change.evidence),
        external=one_line(change.external),
    )
    moved = ClaimChange(claim=name, before=None, after=claim.confidence, why=change.why or "new claim", evidence=list(claim.evidence))
    return _insert(model, claim, kind="claims"), moved


def _revise(model: WorldModel, change: ReviseClaim, roots: Mapping[str, frozenset[str]]) -> tuple[WorldModel, ClaimChange]:
    old = _find(model, change.claim)
    evidence, against = _joined(old.evidence, change.evidence), _joined(old.against, change.against)
    after = old.confidence if change.confidence is None else _confidence(change.confidence)
    why = change.why
    if refuted(against, roots) and after >= REFUTED_BELOW:
        after, why = _hold_down(old, after, why, contradicted=against != old.against, supported=evidence != old.evidence)
    new = replace(
        old,
        confidence=after,
        sentence=old.sentence if change.sentence is None else _sentence(change.sentence),
        assertions=old.assertions if change.assertions is None else _assertions(change.assertions),
        evidence=evidence,
        against=against,
        source=(),
    )
    moved = ClaimChange(claim=old.id, before=old.confidence, after=after, why=why, evidence=[*change.evidence, *change.against])
    return map_claims(model, lambda c: new if c.id == old.id else c), moved


def _hold_down(old: Claim, after: float, why: str, *, contradicted: bool, supported: bool) -> tuple[float, str]:
    if contradicted:
        return DEMOTED, f"{why}; two independent experiments contradict it, so it falls below 0.5 by rule"
    if after > old.confidence and not supported:
        raise WorldModelError(
            f"claim {old.id} is contradicted by {', '.join(old.against)}", hint="it can only rise again on evidence it does not have yet"
        )
    return after, why


def _bury(model: WorldModel, change: BuryClaim) -> tuple[WorldModel, ClaimChange]:
    old = _find(model, change.claim)
    if old not in model.claims:
        raise WorldModelError(f"claim {old.id} is already in the graveyard")
    why = one_line(change.why)
    if not why:
        raise WorldModelError(f"burying {old.id} needs a reason")
    new = replace(old, confidence=_confidence(change.confidence), against=_joined(old.against, change.against), buried=why, source=())
    moved = ClaimChange(claim=old.id, before=old.confidence, after=new.confidence, why=change.why, evidence=list(change.against))
    return _insert(_remove(model, old.id), new, kind="graveyard"), moved


def _reopen(model: WorldModel, change: ReopenClaim) -> tuple[WorldModel, ClaimChange]:
    old = _find(model, change.claim)
    if old not in model.graveyard:
        raise WorldModelError(f"claim {old.id} is not in the graveyard")
    evidence = _joined(old.evidence, change.evidence)
    if evidence == old.evidence:
        raise WorldModelError(f"reopening {old.id} needs evidence it does not have yet", hint="name the experiment that speaks for it")
    new = replace(old, confidence=_confidence(change.confidence), evidence=evidence, buried="", source=())
    moved = ClaimChange(claim=old.id, before=old.confidence, after=new.confidence, why=change.why, evidence=list(change.evidence))
    return _insert(_remove(model, old.id), new, kind="claims"), moved


def _find(model: WorldModel, name: str) -> Claim:
    claim = model.find(name)
    if claim is None:
        known = [c.id for c in (*model.claims, *model.graveyard)]
        near = difflib.get_close_matches(name, known, n=3) or known[-5:]
        raise WorldModelError(f"no claim {name[:40]!r}", hint=f"known: {', '.join(near)}" if near else "there are no claims yet; add one")
    return claim


def _remove(model: WorldModel, name: str) -> WorldModel:
    def without(section: Section) -> Section:
        return replace(section, items=tuple(i for i in section.items if not (isinstance(i, Claim) and i.id == name)))

    return WorldModel(sections=tuple(without(s) for s in model.sections))


def _insert(model: WorldModel, claim: Claim, *, kind: str) -> WorldModel:
    model, at = _section(model, kind)
    items = list(model.sections[at].items)
    last = max((i + 1 for i, item in enumerate(items) if isinstance(item, Claim)), default=None)
    if last is None:
        # The first claim goes below the blank line that follows the heading.
        last = 1 if items[:1] == [""] else 0
        items[last:last] = [claim] if items[last : last + 1] == [""] else [claim, ""]
    else:
        items.insert(last, claim)
    return _with_items(model, at, items)


def _write_notes(model: WorldModel, text: str) -> WorldModel:
    lines = [f"\\{line}" if line.startswith(("# ", "## ")) else line for line in text.strip().splitlines()]
    model, at = _section(model, "notes")
    return _with_items(model, at, ["", *lines, ""])


def _section(model: WorldModel, kind: str) -> tuple[WorldModel, int]:
    heading = TITLES[kind]
    for i, section in enumerate(model.sections):
        if section.kind == kind or section.heading.strip().lower() == heading.lower():
            return model, i
    return WorldModel(sections=(*model.sections, Section(heading=heading, items=("",)))), len(model.sections)


def _with_items(model: WorldModel, at: int, items: Sequence[Claim | str]) -> WorldModel:
    sections = list(model.sections)
    sections[at] = replace(sections[at], items=tuple(items))
    return WorldModel(sections=tuple(sections))


def _sentence(text: str) -> str:
    sentence = one_line(text)
    if not sentence:
        raise WorldModelError("a claim needs a sentence")
    return sentence


def _confidence(value: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise WorldModelError(f"confidence {value} is not between 0 and 1")
    return round(value, 2)


def _assertions(texts: Sequence[str]) -> tuple[Assertion, ...]:
    try:
        return tuple(parse_assertion(text) for text in texts)
    except ValueError as error:
        raise WorldModelError(str(error)) from error


def _references(names: Sequence[str]) -> tuple[str, ...]:
    return _joined((), names)


def _joined(old: tuple[str, ...], new: Sequence[str]) -> tuple[str, ...]:
    for name in new:
        if not name or any(c.isspace() or c in ",;()" for c in name):
            raise WorldModelError(f"{name[:40]!r} is not an experiment id")
    return (*old, *(name for name in dict.fromkeys(new) if name not in old))
