"""Lines of toned text painted through Textual's line API: only what is visible is rendered.

Invariant: text is painted cell by cell and never parsed as markup; tones map to component classes
whose colours are theme variables, and the cursor's row also carries a glyph.
Not for: building lines (`console.views`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.views.doc import BLANK, Line, text_of

TONES = ("plain", "strong", "muted", "good", "bad", "warn", "accent", "heading")


class LinesView(ScrollView, can_focus=True):
    """A scrollable block of lines that are rebuilt for the width they get."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor", *(f"lines--{tone}" for tone in TONES)}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "down", "Down", show=False, id="move.down"),
        Binding("up,k", "up", "Up", show=False, id="move.up"),
        Binding("left,h", "scroll_left", "Left", show=False, id="move.left"),
        Binding("right,l", "scroll_right", "Right", show=False, id="move.right"),
        Binding("pagedown,space", "page_down", "Page down", show=False, id="move.page_down"),
        Binding("pageup,b", "page_up", "Page up", show=False, id="move.page_up"),
        Binding("home,g", "top", "Top", show=False, id="move.top"),
        Binding("end,G", "bottom", "Bottom", show=False, id="move.bottom"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._build: Callable[[int], list[Line]] = _nothing
        self._lines: list[Line] = []
        self._styles_of: dict[str, Style] = {}

    def show(self, build: Callable[[int], list[Line]]) -> None:
        """Paint what `build(width in cells)` returns, now and after every resize."""
        self._build = build
        self.rebuild()

    def rebuild(self) -> None:
        """Ask for the lines again and keep the place in them."""
        width = self.room()
        if width > 0:
            self._lines = self._build(width)
            self.resized_to(len(self._lines), max((len(text_of(row)) for row in self._lines), default=0))

    def room(self) -> int:
        """Cells a line may take; 0 before the first layout."""
        return self.scrollable_content_region.width or self.size.width

    def resized_to(self, count: int, width: int) -> None:
        """Tell the scroll bars how much there is."""
        self.virtual_size = Size(max(width, 1), max(count, 1))
        self.refresh()

    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        """The line at `index`, from 0; blank past the end."""
        return self._lines[index] if 0 <= index < len(self._lines) else BLANK

    def text(self) -> str:
        """Everything shown here as plain text, for copying."""
        return "\n".join(text_of(row).rstrip() for row in self._lines)

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self.rebuild()

    def notify_style_update(self) -> None:
        """Forget resolved styles when the theme changes."""
        self._styles_of = {}
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Paint one visible row."""
        left, top = self.scroll_offset
        width = self.size.width
        strip = self.paint(top + y).crop(left, left + width)
        return strip.adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def paint(self, index: int) -> Strip:
        """Turn the line at `index` into a strip."""
        return Strip(self.segments(self.line_at(index)))

    def segments(self, row: Line) -> list[Segment]:
        """Style the spans of one line."""
        return [Segment(span.text, self.style_of(f"lines--{span.tone}")) for span in row]

    def style_of(self, name: str) -> Style:
        """Resolve one component class, once a theme."""
        if name not in self._styles_of:
            self._styles_of[name] = self.get_component_rich_style(name)
        return self._styles_of[name]

    def action_down(self) -> None:
        """Scroll a line down."""
        self.scroll_relative(y=1, animate=False)

    def action_up(self) -> None:
        """Scroll a line up."""
        self.scroll_relative(y=-1, animate=False)

    def action_page_down(self) -> None:
        """Scroll a page down."""
        self.scroll_relative(y=self.size.height - 1, animate=False)

    def action_page_up(self) -> None:
        """Scroll a page up."""
        self.scroll_relative(y=1 - self.size.height, animate=False)

    def action_top(self) -> None:
        """Scroll to the first line."""
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        """Scroll to the last line."""
        self.scroll_end(animate=False)


class Block(LinesView, can_focus=False):
    """A few lines that never scroll and take the height they need."""

    def room(self) -> int:
        """Cells a line may take; the screen's while the block is hidden for having no lines."""
        return super().room() or self.app.size.width

    def resized_to(self, count: int, width: int) -> None:
        """Grow or shrink to the lines."""
        self.set_class(count == 0, "-empty")
        self.styles.height = max(count, 1)
        super().resized_to(count, width)


def _nothing(width: int) -> list[Line]:
    return []
