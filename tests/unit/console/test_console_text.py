import pytest

from console.text import clean, one_line


@pytest.mark.parametrize(
    ("hostile", "inert"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1bPq#0;2\x1b\\sixel", "sixel"),
        ("\x1bcreset", "reset"),
        ("a\u202eevil\u2066b", "aevilb"),
        ("zero\u200bwidth", "zerowidth"),
        ("lone\ud800surrogate", "lonesurrogate"),
        ("nul\x00 bell\x07 back\x08", "nul bell back"),
        ("tab\there", "tab    here"),
        ("two\r\nlines", "two\nlines"),
        ("over\rwrite", "overwrite"),
        ("[bold]kept[/bold]", "[bold]kept[/bold]"),
    ],
)
def test_hostile_text_is_inert(hostile: str, inert: str) -> None:
    assert clean(hostile) == inert


def test_an_escape_that_was_cut_by_the_limit_leaves_nothing_to_act_on() -> None:
    assert "\x1b" not in clean("x" * 9 + "\x1b[31mred", limit=12)


def test_long_text_and_long_lines_are_cut_and_say_so() -> None:
    assert clean("a" * 30, limit=10) == "a" * 10 + "\n… (cut)"
    assert clean("b" * 5_000_000).startswith("b" * 2_000 + " …")


def test_one_line_collapses_white_space() -> None:
    assert one_line("  a\n\n b\tc ") == "a b c"
    assert one_line("word " * 100, limit=10) == "word word…"
