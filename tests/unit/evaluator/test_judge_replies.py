"""Replies of a runner are hostile data: another shape than the program's is `BadReply`, never an exception of ours."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.judge import replies


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
