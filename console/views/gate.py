"""What the promotion gate checked, what it did not check, and what it decided.

Invariant: `not checked` is shown whenever the gate names something, beside every decision.
Not for: deciding (`daemon.gate`).
"""

from __future__ import annotations

from collections.abc import Sequence

from console.views import marks
from console.views.doc import Line, heading, line, wrapped
from state.events import GateCheck


def report(*, gate: str, checks: Sequence[GateCheck], not_checked: Sequence[str], reason: str, width: int) -> list[Line]:
    """Build the gate's section of an experiment."""
    rows = [heading(f"gate: {gate}" if gate else "gate")]
    if not checks and not reason:
        return [*rows, line(("  not asked", "muted"))]
    rows += [line("  ", marks.passed(c.passed).span, f"  {c.name}", (f"  {c.detail}", "muted")) for c in checks]
    rows += wrapped(reason, width=width, indent="  ") if reason else []
    return rows + unchecked(not_checked, width=width)


def unchecked(parts: Sequence[str], *, width: int) -> list[Line]:
    """Name what no check covered."""
    return wrapped("not checked: " + ", ".join(parts), width=width, indent="  ", tone="warn") if parts else []
