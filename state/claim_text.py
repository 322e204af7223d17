"""One claim as lines of Markdown, and back.

Invariant: `parse_claim(render_claim(claim)) == claim`, and a claim that was read and not changed is
rendered as the very lines it was read from.
Not for: sections and the document (`state.world_model`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from state.claims import CLAIM_ID, Assertion, Claim, parse_assertion

CLAIM_HEAD = re.compile(rf"(?P<mark>[-*+]|#{{3,6}})[ \t]+\[(?P<id>{CLAIM_ID.pattern})\](?=\s|$)")

_BODY = re.compile(r"(?P<sentence>.*\S)\s*\((?P<attributes>confidence\b.*)\)", re.DOTALL)
_REFERENCE = re.compile(r"[^\s,;()]+")
_KEYS = ("confidence", "assert", "evidence", "against", "external", "buried")


def parse_claim(block: Sequence[str]) -> Claim:
    """A claim from its first line and the indented lines below it; ValueError says what is wrong."""
    head = CLAIM_HEAD.match(block[0])
    if head is None:
        raise ValueError("a claim begins with `- [C7] `")
    text = block[0][head.end() :].strip()
    used = 1
    while not _is_whole(text) and used < len(block):
        text = f"{text} {block[used].strip()}".strip()
        used += 1
    body = _BODY.fullmatch(text) if _is_whole(text) else None
    if body is None:
        raise ValueError(f"claim {head['id']} does not end with `(confidence 0.60; ...)`")
    try:
        return _build(head, body, notes=tuple(block[used:]), source=tuple(block))
    except ValueError as error:
        raise ValueError(f"claim {head['id']}: {error}") from error


def render_claim(claim: Claim) -> list[str]:
    """The lines of a claim."""
    if claim.source:
        return list(claim.source)
    parts = [f"confidence {_confidence(claim.confidence)}"]
    parts += [f"assert {assertion}" for assertion in claim.assertions]
    parts += [f"evidence {', '.join(claim.evidence)}"] if claim.evidence else []
    parts += [f"against {', '.join(claim.against)}"] if claim.against else []
    parts += [f"external {claim.external}"] if claim.external else []
    parts += [f"buried {claim.buried}"] if claim.buried else []
    return [f"{claim.mark} [{claim.id}] {claim.sentence} ({'; '.join(parts)})", *claim.notes]


def one_line(text: str) -> str:
    """`text` as it may stand inside a claim: one line, no attribute list of its own, no `;`."""
    return " ".join(text.split()).replace(";", ",").replace("(confidence", "(with confidence")


def _is_whole(text: str) -> bool:
    return text.endswith(")") and "(confidence" in text


def _build(head: re.Match[str], body: re.Match[str], *, notes: tuple[str, ...], source: tuple[str, ...]) -> Claim:
    values = _attributes(body["attributes"])
    return Claim(
        id=head["id"],
        mark=head["mark"],
        sentence=body["sentence"].strip(),
        confidence=_parse_confidence(values["confidence"][0]),
        assertions=tuple(_parse_assertions(values.get("assert", []))),
        evidence=_references(values.get("evidence", [""])[0]),
        against=_references(values.get("against", [""])[0]),
        external=values.get("external", [""])[0],
        buried=values.get("buried", [""])[0],
        notes=notes,
        source=source,
    )


def _attributes(text: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for part in text.split(";"):
        key, _, value = part.strip().partition(" ")
        if key not in _KEYS:
            raise ValueError(f"unknown attribute {key[:40]!r}; known: {', '.join(_KEYS)}")
        if key in values and key != "assert":
            raise ValueError(f"{key} is given twice")
        values.setdefault(key, []).append(value.strip())
    return values


def _parse_confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"confidence {text[:40]!r} is not a number") from None
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"confidence {text} is not between 0 and 1")
    return value


def _parse_assertions(texts: list[str]) -> list[Assertion]:
    return [parse_assertion(text) for text in texts]


def _references(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not _REFERENCE.fullmatch(name):
            raise ValueError(f"{name[:40]!r} is not an experiment id; separate ids with commas")
    return names


def _confidence(value: float) -> str:
    short = f"{value:.2f}"
    return short if float(short) == value else repr(value)
