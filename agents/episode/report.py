"""The outcome of an episode, and the official report inside its trajectory.

`success` is fast_1: correct, and the lower end of the speed-up's interval at 1 or above. `score` is the
speed-up if correct, else 0, capped at 10.
Invariant: every figure is the evaluator's; a missing one is None, never 0.
Not for: feedback to the model, which holds none of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from agents.episode.lifecycle import Boundary
from evaluator.records import Evaluation, Result

SCORE_CAP = 10.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one episode came to."""

    success: bool
    """fast_1."""
    score: float
    trajectory: dict[str, Any]
    """`official_report`, and outside of probes also `attempts`."""
    boundary: Boundary


def outcome(result: Result | None, *, why: str, compiled_us: float | None, boundary: Boundary, attempts: list[dict[str, Any]]) -> Outcome:
    """Outcome of an episode whose protected evaluation gave `result`, or that ended without one because of `why`."""
    report = official_report(result, why=why, compiled_us=compiled_us)
    correct = bool(report["correct"])
    speedup = report["speedup"]
    return Outcome(
        success=bool(report["fast1"]),
        score=min(float(speedup), SCORE_CAP) if correct and speedup is not None else 0.0,
        trajectory={"official_report": report, "attempts": attempts},
        boundary=boundary,
    )


def official_report(result: Result | None, *, why: str, compiled_us: float | None) -> dict[str, Any]:
    """Every field of the report; `status` is `no_submission` where nothing was evaluated."""
    evaluation = result.evaluation if result is not None else None
    measured = evaluation if evaluation is not None and evaluation.correct else None
    ref_us = _geomean(t.ref_us for t in measured.timings) if measured else None
    cand_us = _geomean(t.cand_us for t in measured.timings) if measured else None
    return {
        "status": result.status.value if result is not None else "no_submission",
        "message": result.message if result is not None else why,
        "correct": bool(evaluation and evaluation.correct),
        "fast1": bool(evaluation and evaluation.fast1),
        "fast1_raw": bool(evaluation and evaluation.fast1_raw),
        **_speed(measured),
        "speedup_vs_compile": compiled_us / cand_us if compiled_us and cand_us else None,
        "ref_ms": ref_us / 1000 if ref_us else None,
        "cand_ms": cand_us / 1000 if cand_us else None,
        "n_trials": sum(t.trials for t in measured.timings) if measured else 0,
        "flags": list(evaluation.flags) if evaluation else [],
        "evaluator_fingerprint": result.fingerprint.get("sha256") if result is not None else None,
        "source_sha256": result.source_sha256 if result is not None else None,
    }


def _speed(measured: Evaluation | None) -> dict[str, float | None]:
    return {
        "speedup": measured.speedup if measured else None,
        "speedup_lo95": measured.speedup_ci.low if measured and measured.speedup_ci else None,
        "speedup_mean": _geomean(t.speedup_mean for t in measured.timings) if measured else None,
    }


def _geomean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None
