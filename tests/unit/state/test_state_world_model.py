from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.claims import Assertion, Claim, parse_assertion
from state.errors import LineLimit, WorldModelError
from state.world_model import LINE_LIMIT, NEW_DOCUMENT, Section, WorldModel, archive, check_limit, line_count, parse, render

DOCUMENT = """\
# World model of softmax
Edited by hand, *freely*.

## Claims

- [C3] exp (the vector one) dominates; mostly
  (confidence 0.70; assert speedup@long in [1.2, 2.0]; assert speedup@short < 1; evidence e2, e5; against e9)
  A note below it.
  - and a point
* [C4]   two   passes suffice (confidence 0.5)

Prose between claims is fine.
### [C5] a claim as a heading (confidence 1; external 2026-05-01)
text below it

## Graveyard
- [C1] fp16 is accurate enough (confidence 0.1; against e4, e6; buried 479 of 640 (most) fail)

## Notes
- [C3] mentioned here is text
- [ ] to do
# Another title
"""


def test_a_document_by_hand() -> None:
    model = parse(DOCUMENT)
    assert [claim.id for claim in model.claims] == ["C3", "C4", "C5"]
    c3 = model.claims[0]
    assert c3.sentence == "exp (the vector one) dominates; mostly"
    assert (c3.confidence, c3.evidence, c3.against) == (0.7, ("e2", "e5"), ("e9",))
    assert c3.assertions == (
        Assertion(metric="speedup", case="long", low=1.2, high=2.0),
        Assertion(metric="speedup", case="short", low=-math.inf, high=1.0),
    )
    assert c3.notes == ("  A note below it.", "  - and a point")
    assert model.claims[2].external == "2026-05-01"
    assert [(c.id, c.buried) for c in model.graveyard] == [("C1", "479 of 640 (most) fail")]
    assert model.find("C1") == model.graveyard[0]
    assert model.find("C2") is None


def test_it_is_written_back_as_it_was_read() -> None:
    assert render(parse(DOCUMENT)) == DOCUMENT
    assert render(parse(NEW_DOCUMENT)) == NEW_DOCUMENT
    assert parse(DOCUMENT.replace("\n", "\r\n")) == parse(DOCUMENT)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("## Claims\n- exp dominates (confidence 0.5)", 2, "needs an id"),
        ("# W\n\n## Claims\n\n- [C1] exp dominates", 5, r"claim C1 does not end with `\(confidence"),
        ("## Claims\n- [C1] (confidence 0.5)", 2, "claim C1 does not end with"),
        ("## Claims\n- [C1] x (confidence high)", 2, "confidence 'high' is not a number"),
        ("## Claims\n- [C1] x (confidence 1.01)", 2, "not between 0 and 1"),
        ("## Claims\n- [C1] x (confidence nan)", 2, "not between 0 and 1"),
        ("## Claims\n- [C1] x (confidence 0.5; evidense e1)", 2, "unknown attribute 'evidense'"),
        ("## Claims\n- [C1] x (confidence 0.5; evidence e1; evidence e2)", 2, "evidence is given twice"),
        ("## Claims\n- [C1] x (confidence 0.5; evidence e1 e2)", 2, "'e1 e2' is not an experiment id"),
        ("## Claims\n- [C1] x (confidence 0.5; assert faster)", 2, "assertion 'faster' is not"),
        ("## Claims\n- [C1] x (confidence 0.5; assert speedup@long in [2, 1])", 2, "low < high"),
        ("## Claims\n- [C1] x (confidence 0.5; assert speedup@long < 1e999)", 2, "finite"),
        ("## Claims\n- [C1] x (confidence 0.5)\n## Graveyard\n- [C1] y (confidence 0.1)", 4, r"claim C1 is there twice \(lines 2, 4\)"),
        ("text\n" + "x" * 2001, 2, "longer than 2000 characters"),
        ("## Claims\n- a\n- b\n- c", 2, r"\(and 2 more\)"),
    ],
)
def test_errors_name_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(WorldModelError, match=why) as caught:
        parse(text)
    assert caught.value.line == line
    assert caught.value.message.startswith(f"WORLD_MODEL.md, line {line}: ")
    assert caught.value.code == 1


_pieces = st.sampled_from(
    [
        "",
        "text",
        "## Claims",
        "##  claims ##",
        "## Graveyard",
        "## Notes",
        "# Title",
        "### sub",
        "  indented",
        "\tx",
        "- [C1] one (confidence 0.5)",
        "- [C2] two",
        "  goes on (confidence 0.25; evidence e1)",
        "+ [D1] plus (confidence 1)",
        "### [H1] head (confidence 0; buried a (b) c)",
        "- [C4] x (confidence 0.5) (confidence 0.6; assert speedup@a>1)",
        "* item",
        "  (confidence 0.5)",
    ]
)


@settings(max_examples=400, deadline=None)
@given(lines=st.lists(_pieces | st.text(max_size=8), max_size=12))
def test_whatever_parses_is_written_back_unchanged(lines: list[str]) -> None:
    text = "\n".join(lines).replace("\r\n", "\n")
    try:
        model = parse(text)
    except WorldModelError as refused:
        line = refused.line or 0
    else:
        assert render(model) == text
        assert line_count(model) == (len(text.removesuffix("\n").split("\n")) if text else 0)
        line = 1
    assert 1 <= line <= text.count("\n") + 1


_words = st.text("abc ()[]äß%.,:<>@-", min_size=1, max_size=30).map(lambda s: " ".join(s.split())).filter(bool)
_ids = st.lists(st.from_regex(r"[a-z]\d{1,3}", fullmatch=True), max_size=3, unique=True).map(tuple)
_bounds = st.tuples(st.floats(0.001, 10), st.floats(10.5, 1e6))
_assertion = st.builds(
    lambda case, b: Assertion(metric="speedup", case=case, low=b[0], high=b[1]), st.sampled_from(["long", "n=32"]), _bounds
) | st.builds(lambda x: Assertion(metric="rho", case="geomean", low=x, high=math.inf), st.floats(-1e9, 1e9))
_assertions = st.lists(_assertion, max_size=2).map(tuple)
_claims = st.builds(
    Claim,
    id=st.just("C0"),
    sentence=_words,
    confidence=st.floats(0, 1),
    assertions=_assertions,
    evidence=_ids,
    against=_ids,
    external=st.sampled_from(["", "2026-05-01"]),
    buried=_words | st.just(""),
    notes=st.lists(_words.map(lambda s: f"  {s}"), max_size=2).map(tuple),
    mark=st.sampled_from(["-", "*", "+", "###"]),
)


@settings(max_examples=300, deadline=None)
@given(claims=st.lists(_claims, max_size=4), text=_words)
def test_a_model_survives_being_written_and_read(claims: list[Claim], text: str) -> None:
    import dataclasses

    numbered = [dataclasses.replace(claim, id=f"C{i}") for i, claim in enumerate(claims)]
    model = WorldModel(
        sections=(
            Section(heading="# World model", items=("",)),
            Section(heading="## Claims", items=("", *numbered[:2], "")),
            Section(heading="## Graveyard", items=(*numbered[2:],)),
            Section(heading="## Notes", items=(text, "")),
        )
    )
    assert parse(render(model)) == model


@given(assertion=_assertion)
def test_an_assertion_survives_as_text(assertion: Assertion) -> None:
    assert parse_assertion(str(assertion)) == assertion


@pytest.mark.parametrize(
    ("text", "value", "low", "high", "contradicted"),
    [
        ("speedup@a in [1.2, 2]", 1.5, None, None, False),
        ("speedup@a in [1.2, 2]", 1.1, None, None, True),
        ("speedup@a in [1.2, 2]", 1.1, 0.9, 1.3, False),
        ("speedup@a in [1.2, 2]", 2.5, 2.1, 2.9, True),
        ("speedup@a > 1", 0.99, None, None, True),
        ("speedup@a > 1", 0.99, 0.97, 1.01, False),
        ("speedup@a < 1", 1.5, 1.4, 1.6, True),
    ],
)
def test_when_a_measurement_contradicts(text: str, value: float, low: float | None, high: float | None, contradicted: bool) -> None:
    assert parse_assertion(text).contradicted_by(value, low=low, high=high) is contradicted


def test_the_line_limit() -> None:
    head = "## Notes\n"
    check_limit(parse(head + "x\n" * (LINE_LIMIT - 1)))
    with pytest.raises(LineLimit) as caught:
        check_limit(parse(head + "x\n" * LINE_LIMIT))
    assert caught.value.message == "the world model would have 251 lines; the limit is 250"
    assert "archive" in caught.value.hint


def test_archiving_takes_claims_out_with_their_notes() -> None:
    model, text = archive(parse(DOCUMENT), ["C3", "C1"], why="settled by e9")
    assert [claim.id for claim in (*model.claims, *model.graveyard)] == ["C4", "C5"]
    assert text.startswith("# Archived claims\n\nsettled by e9\n\n- [C3] exp (the vector one) dominates; mostly\n")
    assert "  A note below it.\n" in text
    assert text.endswith("buried 479 of 640 (most) fail)\n")
    assert line_count(model) == line_count(parse(DOCUMENT)) - 5
    with pytest.raises(WorldModelError, match="no claim C9 to archive"):
        archive(model, ["C9"], why="w")
