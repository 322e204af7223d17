"""Choosing controls by name."""

from __future__ import annotations

import pytest

from evaluator.errors import UsageError
from evaluator.qualification.table import chosen_controls, subset


def test_named_controls_come_in_the_tables_order() -> None:
    assert [c.id for c in chosen_controls(["early_start", "timer_python"], quick=False)] == ["timer_python", "early_start"]
    assert chosen_controls(None, quick=True) == subset(quick=True)


def test_an_unknown_control_is_named_with_near_ones() -> None:
    with pytest.raises(UsageError) as caught:
        chosen_controls(["timer_pyton"], quick=False)
    assert "timer_python" in caught.value.hint
