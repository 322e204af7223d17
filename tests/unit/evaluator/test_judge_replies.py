"""Replies of a runner are hostile data: another shape than the program's is `BadReply`, never an exception of ours."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.judge import replies
from evaluator.records import ProfiledOperation
from evaluator.runner.profiling import gaps


def test_good_replies_are_read() -> None:
    assert replies.words({"x": ["a", "b" * 1000]}, "x") == ["a", "b" * replies.WORD]
    assert replies.counts({"x": {"f": 3}}, "x") == {"f": 3}
    assert replies.addresses({"x": [[1, 2], [3, 4]]}, "x", slots=2, inputs=2) == [[1, 2], [3, 4]]
    assert replies.number({"x": 7}, "x") == 7


@pytest.mark.parametrize("value", [None, 1, "a", {}, [1], [None], [["a"]]])
def test_words_refuse_other_shapes(value: Any) -> None:
    with pytest.raises(replies.BadReply):
        replies.words({"x": value}, "x")


@pytest.mark.parametrize("value", [None, [], {"f": -1}, {"f": True}, {"f": 1.5}, {"f": 1 << 64}])
def test_counts_refuse_other_shapes(value: Any) -> None:
    with pytest.raises(replies.BadReply):
        replies.counts({"x": value}, "x")


@pytest.mark.parametrize("value", [None, [[1, 2]], [[1], [2]], [[1, 2], [3, -4]], [[1, 2], [3, "4"]], [[1, 2], None]])
def test_addresses_refuse_other_shapes(value: Any) -> None:
    with pytest.raises(replies.BadReply):
        replies.addresses({"x": value}, "x", slots=2, inputs=2)


@pytest.mark.parametrize("value", [None, True, -1, 1.0, "1"])
def test_a_number_is_a_number(value: Any) -> None:
    with pytest.raises(replies.BadReply):
        replies.number({"x": value}, "x")


PROFILE = {"plain_us": 5.5, "operations": [{"name": "aten::mm", "where": "host", "calls": 1.0, "us": 3.25}], "gaps_us": [4.0, 1, 2.0]}


def test_a_profile_is_read() -> None:
    case = replies.profile(PROFILE, "wide")
    assert (case.case, case.plain_us, case.gaps, case.gap_us) == ("wide", 5.5, 3, 2.0)
    assert case.operations == (ProfiledOperation(name="aten::mm", where="host", calls=1.0, us=3.25),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"plain_us": float("inf")},
        {"plain_us": -1},
        {"plain_us": True},
        {"gaps_us": ["1"]},
        {"operations": None},
        {"operations": [[]]},
        {"operations": [{"name": "a", "where": "elsewhere", "calls": 1, "us": 1}]},
        {"operations": [{"name": "a", "where": "host", "calls": 1, "us": float("nan")}]},
        {"operations": [{"name": "a", "where": "host", "us": 1}]},
    ],
)
def test_a_profile_refuses_other_shapes(wrong: dict[str, Any]) -> None:
    with pytest.raises(replies.BadReply):
        replies.profile(PROFILE | wrong, "wide")


@pytest.mark.parametrize(
    ("intervals", "idle"),
    [
        ([], []),
        ([(0.0, 5.0)], []),
        ([(0.0, 5.0), (7.0, 8.0)], [2.0]),
        ([(0.0, 5.0), (3.0, 4.0), (6.0, 7.0)], [1.0]),
        ([(0.0, 5.0), (5.0, 6.0)], []),
    ],
)
def test_gaps_are_the_times_that_no_kernel_covers(intervals: list[tuple[float, float]], idle: list[float]) -> None:
    assert gaps(intervals) == idle
