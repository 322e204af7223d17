from __future__ import annotations

import hashlib
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.errors import BadPrediction
from state.events import Belief
from state.prediction import freeze, prediction_sha256, validate

CASES = ("short", "long")


def belief(case: str = "long", low: float = 1.2, high: float = 2.0, basis: str = "roofline", level: float = 0.8) -> Belief:
    return Belief(case=case, low=low, high=high, basis=basis, level=level)


def test_the_frozen_bytes_and_their_hash() -> None:
    frozen = freeze([belief("short", 1, 2), belief("long")])
    assert frozen == (
        b'[{"case":"long","low":1.2,"high":2.0,"basis":"roofline","level":0.8},'
        b'{"case":"short","low":1.0,"high":2.0,"basis":"roofline","level":0.8}]'
    )
    assert prediction_sha256([belief("short", 1, 2), belief("long")]) == hashlib.sha256(frozen).hexdigest()


beliefs = st.lists(
    st.builds(belief, case=st.text(), low=st.floats(0.01, 1), high=st.floats(1.01, 100), basis=st.text(), level=st.floats(0.01, 0.99)),
    max_size=5,
    unique_by=lambda b: b.case,
)


@given(beliefs=beliefs, seed=st.randoms())
def test_the_order_and_a_journey_through_json_do_not_matter(beliefs: list[Belief], seed: object) -> None:
    shuffled = list(beliefs)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    through = msgspec.json.decode(msgspec.json.encode(shuffled), type=list[Belief])
    assert prediction_sha256(through) == prediction_sha256(beliefs)


@given(beliefs=beliefs.filter(bool))
def test_any_change_changes_the_hash(beliefs: list[Belief]) -> None:
    first = beliefs[0]
    other = msgspec.structs.replace(first, high=math.nextafter(first.high, math.inf))
    assert prediction_sha256([other, *beliefs[1:]]) != prediction_sha256(beliefs)


def test_a_valid_prediction_passes() -> None:
    assert validate([belief("short", 0.9, 1.1), belief("long")], cases=CASES) is None, "nothing is raised"


@pytest.mark.parametrize(
    ("beliefs", "why"),
    [
        ([], "no belief about any case"),
        ([belief("huge")], "huge: no such case; known: long, short"),
        ([belief(low=0.0)], r"long: needs 0 < low < high, got \[0, 2\]"),
        ([belief(low=-1.0)], "0 < low < high"),
        ([belief(low=2.0)], "0 < low < high"),
        ([belief(high=math.inf)], "0 < low < high"),
        ([belief(low=math.nan)], "0 < low < high"),
        ([belief(level=1.0)], "level 1 is not between 0 and 1"),
        ([belief(level=0.0)], "level 0 is not"),
        ([belief(level=math.nan)], "level nan is not"),
        ([belief(basis=" \n")], "basis is empty"),
        ([belief(basis="x" * 2001)], "longer than 2000"),
        ([belief(), belief()], "predicted twice"),
    ],
)
def test_what_cannot_be_frozen(beliefs: list[Belief], why: str) -> None:
    with pytest.raises(BadPrediction, match=why) as caught:
        validate(beliefs, cases=CASES)
    assert caught.value.code == 2


def test_every_reason_is_listed() -> None:
    with pytest.raises(BadPrediction) as caught:
        validate([belief("huge", level=2.0, basis="")], cases=CASES)
    assert len(caught.value.problems) == 3
