import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.views import bars, numbers
from console.views.doc import Column, Span, fit, line, row_of, text_of, wrapped

COLUMNS = (
    Column(title="id", width=4),
    Column(title="title", width=6, grows=True),
    Column(title="extra", width=8, rank=1),
    Column(title="n", width=3, right=True),
)
CELLS = [Span("E1"), Span("a long title"), Span("more"), Span("7")]


def test_a_row_takes_exactly_its_width_and_gives_up_its_least_columns() -> None:
    assert text_of(row_of(CELLS, COLUMNS, width=30)) == "E1   a long title more       7"
    assert text_of(row_of(CELLS, COLUMNS, width=20)) == "E1   a long tit…   7"


@settings(deadline=None)
@given(st.text(), st.integers(0, 40))
def test_fit_is_exact_in_cells(text: str, width: int) -> None:
    from rich.cells import cell_len

    cleaned = text_of(line(text))
    assert cell_len(fit(cleaned, width)) == width


def test_a_line_never_holds_a_line_break_or_an_escape() -> None:
    assert text_of(line("a\nb", ("\x1b[1mc", "bad"))) == "a bc"


def test_wrapped_keeps_indentation_and_blank_lines() -> None:
    rows = [text_of(r) for r in wrapped("one two\n\n  three", width=20, indent="> ")]
    assert rows == ["> one two", "", ">   three"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "—"), (0.912, "0.912 µs"), (9.12, "9.12 µs"), (912.4, "912 µs"), (1830.0, "1.83 ms"), (999.7, "1.00 ms"), (2.5e6, "2.50 s")],
)
def test_durations_have_three_digits_and_a_unit(value: float | None, words: str) -> None:
    assert numbers.duration_us(value) == words


def test_unknown_is_a_word_and_never_zero() -> None:
    assert numbers.money(None) == "unknown"
    assert numbers.count(None) == "unknown"
    assert numbers.times(None) == "—"


def test_moments_are_offsets_from_the_start() -> None:
    start = "2027-01-14T09:00:00.000Z"
    assert numbers.offset(start, "2027-01-14T09:02:15.400Z") == "+02:15"
    assert numbers.offset(start, "2027-01-14T10:02:15Z") == "+1:02:15"
    assert numbers.offset("", "no moment") == "+00:00"


def test_an_interval_is_drawn_on_a_log_axis_beside_one() -> None:
    axis = bars.Axis(low=0.5, high=2.0)
    assert bars.interval(0.5, 0.7071, 1.0, axis=axis, width=9) == "├─●─┤    "
    assert bars.interval(1.2, None, 2.0, axis=axis, width=9) == "    │├──┤"
    assert bars.interval(None, None, None, axis=axis, width=9, band=0.2) == "   ░│░   "


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats()), max_size=6), st.integers(1, 80))
def test_a_bar_never_fails_and_is_exactly_as_wide(values: list[float | None], width: int) -> None:
    axis = bars.axis_over(values)
    low, mid, high = ([*values, None, None, None])[:3]
    assert len(bars.interval(low, mid, high, axis=axis, width=width)) == width


def test_a_sparkline_spans_its_range() -> None:
    assert bars.sparkline([1.0, 1.5, 2.0, math.inf], width=8) == "▁▅█"
