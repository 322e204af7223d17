"""What the naive evaluator believed of each exploit control, as measured when it was added.

The figures ship with the controls, so that a quick qualification need not measure them again; the file
names the command and the machine, and `document` makes a new one from a full qualification.
Invariant: every exploit control has its figure, measured on the control's present text.
Not for: the protected evaluator's figures; those are always measured.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from evaluator.qualification.table import controls
from evaluator.records import Claim, Qualification, decode, encode

FILE = Path(__file__).parent / "shipped.json"


@functools.cache
def shipped() -> dict[str, Any]:
    """The file: `command`, `machine`, `claims` by control with the sha256 of the text they were measured on."""
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def shipped_claim(control: str) -> Claim:
    """The claim measured for this control; a missing one is a claim of nothing, so that the control fails."""
    entry = shipped()["claims"].get(control)
    if entry is None:
        return Claim(correct=False, speedup=None, detail="no measurement ships with this control")
    return decode(Claim, entry["claim"])


def document(qualification: Qualification, *, command: str, machine: dict[str, str]) -> dict[str, Any]:
    """The file's content from a qualification that ran the naive evaluator."""
    measured = {
        o.control: Claim(correct=o.naive_correct, speedup=o.naive_speedup) for o in qualification.controls if o.naive_correct is not None
    }
    claims = {
        control.id: {"sha256": control.source.sha256, "claim": encode(measured[control.id])}
        for control in controls()
        if control.is_exploit and control.id in measured
    }
    return {"command": command, "machine": machine, "claims": claims}
