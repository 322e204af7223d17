from __future__ import annotations

from typing import Any

import msgspec
import pytest
from journal_samples import opened, records_of, small_run

from state.belief_changes import AddClaim, BuryClaim, Change, ReopenClaim, ReviseClaim, WriteNotes, apply_changes, next_claim_id
from state.belief_rules import DEMOTED, Facts, contradictions, demote, facts_of, refuted, reopenable, roots_of
from state.errors import LineLimit, StateError, WorldModelError
from state.reconciliation import Measured
from state.reducer import fold
from state.world_model import NEW_DOCUMENT, WorldModel, parse, render

MODEL = parse(
    """\
## Claims

- [C1] exp dominates (confidence 0.80; assert speedup@long > 1.1; assert speedup@short < 1.05; evidence e1)
- [C2] padding is free (confidence 0.40)

## Graveyard

- [C3] dlaed4 is better (confidence 0.05; assert speedup@long > 1.1; against e2; buried no gain)
"""
)


def facts(experiment: str, *, claims: str = "C1", roots: str = "", **ratios: float) -> Facts:
    return Facts(
        experiment=experiment,
        claims=frozenset(claims.split()),
        measured={case: Measured(ratio=ratio) for case, ratio in ratios.items()},
        roots=frozenset(roots.split()),
    )


def test_only_experiments_that_cite_a_claim_test_it() -> None:
    assert contradictions(MODEL, [facts("e5", claims="C2", long=0.5)]) == []
    found = contradictions(MODEL, [facts("e5", long=0.9), facts("e6", long=1.5), facts("e7", other=0.1)])
    assert [(f.claim.id, f.experiment, f.needs_red_team) for f in found] == [("C1", "e5", True)]
    assert str(found[0]) == "e5 measured 0.9 where C1 asserts speedup@long > 1.1"


def test_one_contradiction_is_noted_and_two_independent_ones_demote() -> None:
    one, changes = demote(MODEL, [facts("e5", long=0.9, short=2.0)])
    assert [(c.claim, c.before, c.after, c.evidence) for c in changes] == [("C1", 0.8, 0.8, ["e5"])]
    claim = one.find("C1")
    assert claim is not None
    assert (claim.confidence, claim.against) == (0.8, ("e5",))
    two, changes = demote(one, [facts("e5", long=0.9), facts("e6", long=0.8)])
    assert [(c.claim, c.before, c.after, c.evidence) for c in changes] == [("C1", 0.8, DEMOTED, ["e6"])]
    assert "by rule" in changes[0].why
    assert demote(two, [facts("e5", long=0.9), facts("e6", long=0.8)]) == (two, [])
    assert "- [C1] exp dominates (confidence 0.45; " in render(two)
    assert "against e5, e6)" in render(two)


@pytest.mark.parametrize(("roots_a", "roots_b", "after"), [("i1", "i1", 0.8), ("i1", "i2", DEMOTED), ("e6", "", 0.8)])
def test_experiments_of_one_idea_or_stack_are_not_independent(roots_a: str, roots_b: str, after: float) -> None:
    model, _ = demote(MODEL, [facts("e5", roots=roots_a, long=0.9), facts("e6", roots=roots_b, long=0.9)])
    claim = model.find("C1")
    assert claim is not None
    assert (claim.confidence, claim.against) == (after, ("e5", "e6"))


def test_refutation_needs_two_different_experiments() -> None:
    assert not refuted(["e1"], {})
    assert not refuted(["e1", "e1"], {})
    assert refuted(["e1", "e2"], {})
    assert not refuted(["e1", "e2"], {"e1": frozenset({"i"}), "e2": frozenset({"i"})})
    assert refuted(["e1", "e2", "e3"], {"e1": frozenset({"i"}), "e2": frozenset({"i"})})


def test_a_result_can_speak_for_a_buried_claim() -> None:
    found = reopenable(MODEL, [facts("e8", claims="C3", long=1.3), facts("e9", claims="C3", long=1.0), facts("e2", claims="C3", long=1.3)])
    assert [(f.claim.id, f.experiment) for f in found] == [("C3", "e8")]


def test_facts_come_from_reconciled_experiments() -> None:
    state = fold(records_of([*small_run(), ("experiment.opened", "x", opened("e2"))]))
    found = facts_of(state)
    assert [f.experiment for f in found] == ["e1"]
    assert found[0].claims == {"C1"}
    assert found[0].roots == {"idea i1"}
    assert found[0].measured["long"] == Measured(ratio=1.25, low=1.22, high=1.28)
    assert found[0].measured["geomean"].ratio == pytest.approx(1.25)
    assert roots_of(found) == {"e1": frozenset({"idea i1"})}


def changed(*changes: Change, model: WorldModel = MODEL, **options: Any) -> tuple[WorldModel, list[tuple[str, float | None, float]]]:
    model, moved = apply_changes(model, changes, **options)
    assert parse(render(model)) == model
    return model, [(c.claim, c.before, c.after) for c in moved]


def test_a_new_claim_gets_the_next_id() -> None:
    model, moved = changed(
        AddClaim(sentence="tiles\n of 64 win; (confidence ok", confidence=0.654, assertions=["speedup@long > 1"], evidence=["e4", "e4"])
    )
    assert moved == [("C4", None, 0.65)]
    assert render(model).splitlines()[4] == (
        "- [C4] tiles of 64 win, (with confidence ok (confidence 0.65; assert speedup@long > 1; evidence e4)"
    )
    assert next_claim_id(model) == "C5"


def test_the_first_claim_of_a_new_document() -> None:
    model, moved = changed(AddClaim(sentence="x", confidence=0.6), model=parse(NEW_DOCUMENT))
    assert moved == [("C1", None, 0.6)]
    assert render(model) == NEW_DOCUMENT.replace("## Claims\n", "## Claims\n\n- [C1] x (confidence 0.60)\n")
    bare, _ = changed(AddClaim(sentence="x", confidence=0.6), model=parse("Only text."))
    assert render(bare) == "Only text.\n## Claims\n\n- [C1] x (confidence 0.60)\n"


def test_a_revision_moves_confidence_and_keeps_the_rest() -> None:
    model, moved = changed(ReviseClaim(claim="C1", why="w", confidence=0.6, evidence=["e7"]))
    assert moved == [("C1", 0.8, 0.6)]
    assert render(model).splitlines()[2] == (
        "- [C1] exp dominates (confidence 0.60; assert speedup@long > 1.1; assert speedup@short < 1.05; evidence e1, e7)"
    )
    model, moved = changed(ReviseClaim(claim="C1", why="w", sentence="exp is half", assertions=[]))
    assert moved == [("C1", 0.8, 0.8)]
    assert render(model).splitlines()[2] == "- [C1] exp is half (confidence 0.80; evidence e1)"


def test_a_refuted_claim_falls_and_only_rises_on_new_evidence() -> None:
    model, moved = changed(ReviseClaim(claim="C1", why="w", confidence=0.9, against=["e5", "e6"]))
    assert moved == [("C1", 0.8, DEMOTED)]
    with pytest.raises(WorldModelError, match="C1 is contradicted by e5, e6"):
        changed(ReviseClaim(claim="C1", why="w", confidence=0.9), model=model)
    with pytest.raises(WorldModelError, match="contradicted"):
        changed(ReviseClaim(claim="C1", why="w", confidence=0.9, evidence=["e1"]), model=model)
    assert changed(ReviseClaim(claim="C1", why="w", confidence=0.9, evidence=["e8"]), model=model)[1] == [("C1", DEMOTED, 0.9)]
    assert changed(ReviseClaim(claim="C1", why="w", confidence=0.49), model=model)[1] == [("C1", DEMOTED, 0.49)]
    same = {"e5": frozenset({"i"}), "e6": frozenset({"i"})}
    assert changed(ReviseClaim(claim="C1", why="w", against=["e5", "e6"]), roots=same)[1] == [("C1", 0.8, 0.8)]


def test_burying_and_reopening() -> None:
    model, moved = changed(BuryClaim(claim="C1", why="it; was\nwrong (all of it)", against=["e5"]))
    assert moved == [("C1", 0.8, 0.1)]
    assert [c.id for c in model.claims] == ["C2"]
    buried = model.find("C1")
    assert buried is not None
    assert (buried.buried, buried.against) == ("it, was wrong (all of it)", ("e5",))
    with pytest.raises(WorldModelError, match="needs evidence it does not have"):
        changed(ReopenClaim(claim="C1", why="w", confidence=0.6, evidence=["e1"]), model=model)
    model, moved = changed(ReopenClaim(claim="C1", why="the port had a bug", confidence=0.6, evidence=["e9"]), model=model)
    assert moved == [("C1", 0.1, 0.6)]
    reopened = model.find("C1")
    assert reopened is not None
    assert (reopened.buried, reopened.evidence, reopened in model.claims) == ("", ("e1", "e9"), True)


def test_notes_are_replaced_and_cannot_make_sections() -> None:
    model, moved = changed(WriteNotes(text="distilled\n## Claims\n- not a claim\n"))
    assert moved == []
    assert render(model).endswith("## Notes\n\ndistilled\n\\## Claims\n- not a claim\n")
    again, _ = changed(WriteNotes(text="shorter"), model=model)
    assert render(again).endswith("## Notes\n\nshorter\n")
    assert [c.id for c in again.claims] == ["C1", "C2"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (AddClaim(sentence=" ", confidence=0.5), "needs a sentence"),
        (AddClaim(sentence="x", confidence=1.5), "not between 0 and 1"),
        (AddClaim(sentence="x", confidence=float("nan")), "not between 0 and 1"),
        (AddClaim(sentence="x", confidence=0.5, claim="C1"), "claim C1 is already there"),
        (AddClaim(sentence="x", confidence=0.5, claim="C 9"), "'C 9' is not a claim id"),
        (AddClaim(sentence="x", confidence=0.5, assertions=["faster"]), "assertion 'faster' is not"),
        (AddClaim(sentence="x", confidence=0.5, evidence=["e1; against e2"]), "is not an experiment id"),
        (AddClaim(sentence="x" * 3000, confidence=0.5), "longer than 2000"),
        (ReviseClaim(claim="C9", why="w"), "no claim 'C9'"),
        (BuryClaim(claim="C3", why="w"), "already in the graveyard"),
        (BuryClaim(claim="C1", why=" "), "needs a reason"),
        (ReopenClaim(claim="C1", why="w", confidence=0.5, evidence=["e9"]), "C1 is not in the graveyard"),
    ],
)
def test_changes_that_are_refused(change: Change, why: str) -> None:
    with pytest.raises(WorldModelError, match=why):
        apply_changes(MODEL, [ReviseClaim(claim="C2", why="w", confidence=0.3), change])


def test_a_full_document_refuses_growth_but_not_distilling() -> None:
    full = parse(render(MODEL) + "## Notes\n" + "x\n" * 300)
    for change in (AddClaim(sentence="x", confidence=0.5), ReviseClaim(claim="C2", why="w", confidence=0.3)):
        with pytest.raises(LineLimit) as caught:
            apply_changes(full, [change])
        assert isinstance(caught.value, StateError)
    shorter, moved = changed(AddClaim(sentence="x", confidence=0.5), WriteNotes(text="all of it, distilled"), model=full)
    assert moved == [("C4", None, 0.5)]
    assert len(render(shorter).splitlines()) == 12


def test_changes_come_from_a_tools_json() -> None:
    text = b'[{"action":"revise","claim":"C2","why":"e9","confidence":0.2,"against":["e9"]},{"action":"notes","text":"n"}]'
    changes = msgspec.json.decode(text, type=list[Change])
    assert changes == [ReviseClaim(claim="C2", why="e9", confidence=0.2, against=["e9"]), WriteNotes(text="n")]
