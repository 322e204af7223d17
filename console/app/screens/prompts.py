"""Small questions on top of a screen: what `q` should do in a demo, a nudge's text, a confirmation.

Invariant: each choice is a letter of its own, Enter never does what cannot be undone, Escape goes back.
Not for: doing what was chosen (`console.app.app`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app.widgets.lines import Block
from console.views.doc import Line, line


@dataclass(frozen=True, slots=True)
class Choice:
    """One letter and what it does."""

    key: str
    words: str


class ChoicePrompt(ModalScreen[str | None]):
    """Choose by letter."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back", id="prompt.back")]

    def __init__(self, question: str, choices: tuple[Choice, ...]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Lay out question and choices."""
        with Vertical(id="prompt"):
            yield Block(id="choices")

    def on_mount(self) -> None:
        """Paint the choices."""
        self.query_one(Block).show(lambda _: self._rows())

    def on_key(self, event: events.Key) -> None:
        """Take a letter."""
        if any(event.key == choice.key for choice in self._choices):
            event.stop()
            self.dismiss(event.key)

    def _rows(self) -> list[Line]:
        rows = [line((self._question, "heading"))]
        rows += [line((f"  {c.key}  ", "strong"), c.words) for c in self._choices]
        return [*rows, line(("  esc  go back", "muted"))]


class NudgePrompt(ModalScreen[str | None]):
    """One line to the orchestrator, at the bottom of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back", id="prompt.back")]

    def compose(self) -> ComposeResult:
        """Lay out the line."""
        with Vertical(id="nudge"):
            yield Block(id="nudge-help")
            yield Input(placeholder="what the orchestrator should know", id="nudge-text", max_length=4_000)

    def on_mount(self) -> None:
        """Give the line the keys."""
        help_line = line(("nudge  ", "heading"), ("a message to the orchestrator; Enter queues it, Esc goes back", "muted"))
        self.query_one(Block).show(lambda _: [help_line])
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Queue what was typed; an empty line goes back."""
        self.dismiss(event.value.strip() or None)
