"""The progress of one judge job while a person waits.

Invariant: written to standard error only: one line rewritten in place on a terminal, else one line
for each step.
Not for: results.
"""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import Self, TextIO

from console.text import one_line
from console.views.doc import fit
from evaluator.records import Progress


class ProgressLine:
    """Shows the latest step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._inline = stream.isatty()
        self._step = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._inline and self._step:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, progress: Progress) -> None:
        """Show one step of the judge."""
        far = f" {progress.done}/{progress.total}" if progress.done is not None and progress.total else ""
        words = one_line(f"{progress.step}{far} {progress.detail}".rstrip())
        if self._inline:
            size = shutil.get_terminal_size((100, 24)).columns
            self._stream.write("\r\x1b[K" + fit(words, max(size - 1, 10)).rstrip())
        elif progress.step != self._step:
            self._stream.write(f"{words}\n")
        self._step = progress.step
        self._stream.flush()
