"""What a model gets to see of results and records: the figures it may know, in small flat objects.

The paths here are what session files and prompts refer to, so they are part of the tools' contract.
Invariant: a check's view holds no time and no speed. Not for: screens, which read the state.
"""

from __future__ import annotations

from typing import Any

from evaluator.records import Evaluation, Result, Verdict
from state.model import Experiment, Idea, Outcome


def check_view(result: Result) -> dict[str, Any]:
    """Build and correctness only."""
    view = _result(result)
    if result.evaluation is not None:
        view["cases"] = [
            {"case": c.case, "correct": c.correct, "max_abs_error": c.max_abs_error, "detail": c.detail} for c in result.evaluation.checks
        ]
    return view


def evaluation_view(result: Result) -> dict[str, Any]:
    """A protected evaluation: status, correctness, speed-up over the reference."""
    view = _result(result)
    evaluation = result.evaluation
    if evaluation is None:
        return view
    view |= {
        "correct": evaluation.correct,
        "speedup": evaluation.speedup,
        "speedup_ci": _pair(evaluation.speedup_ci.low, evaluation.speedup_ci.high) if evaluation.speedup_ci else None,
        "flags": list(evaluation.flags),
        "cases": _evaluation_cases(evaluation),
    }
    if evaluation.naive is not None:
        view["naive"] = {"speedup": evaluation.naive.speedup, "correct": evaluation.naive.correct}
    return view


def robustness_view(result: Result) -> dict[str, Any]:
    """The robustness suite: which parts passed, and what this version does not check."""
    view = _result(result)
    if result.robustness is not None:
        view["passed"] = result.robustness.passed
        view["parts"] = [{"name": p.name, "passed": p.passed, "tests": p.tests, "detail": p.detail} for p in result.robustness.parts]
        view["not_checked"] = list(result.robustness.not_checked)
    return view


def verdict_view(result: Result) -> dict[str, Any]:
    """A symmetric A/B; `gain` is 1/rho, how many times faster than the champion."""
    view = _result(result)
    verdict = result.verdict
    if verdict is None:
        return view
    view |= {
        "decision": verdict.decision.value,
        "reason": verdict.reason,
        "rho": verdict.rho,
        "rho_ci": _pair(verdict.rho_ci.low, verdict.rho_ci.high),
        "gain": 1.0 / verdict.rho if verdict.rho > 0 else None,
        "floor": verdict.floor,
        "cases": _verdict_cases(verdict),
    }
    return view


def experiment_view(experiment: Experiment) -> dict[str, Any]:
    """One experiment as lists and decisions need it."""
    return {
        "experiment": experiment.id,
        "title": experiment.title,
        "idea": experiment.idea,
        "stage": experiment.stage,
        "rung": experiment.rung,
        "base": experiment.base,
        "final": experiment.final,
        "prediction": [{"case": b.case, "low": b.low, "high": b.high, "basis": b.basis} for b in experiment.prediction],
        "conclusion": experiment.conclusion,
        "report": experiment.report,
        "check": _outcome(experiment.check),
        "evaluation": _outcome(experiment.evaluation),
        "robustness": _outcome(experiment.robustness),
        "verdict": _outcome(experiment.verdict),
        "surprise": experiment.surprise,
        "correctness": experiment.correctness,
        "performance": experiment.performance,
        "hypothesis": experiment.hypothesis,
        "retention": experiment.retention,
    }


def idea_view(idea: Idea) -> dict[str, Any]:
    """One idea with its beliefs."""
    return {
        "idea": idea.id,
        "title": idea.title,
        "category": idea.category,
        "rationale": idea.rationale,
        "beliefs": [{"case": b.case, "low": b.low, "high": b.high, "basis": b.basis} for b in idea.beliefs],
    }


def _result(result: Result) -> dict[str, Any]:
    view: dict[str, Any] = {"status": result.status.value, "message": result.message}
    for name in ("hint", "log"):
        if text := getattr(result, name):
            view[name] = text
    return view


def _evaluation_cases(evaluation: Evaluation) -> list[dict[str, Any]]:
    timings = {t.case: t for t in evaluation.timings}
    cases: list[dict[str, Any]] = []
    for check in evaluation.checks:
        case: dict[str, Any] = {"case": check.case, "correct": check.correct, "max_abs_error": check.max_abs_error, "detail": check.detail}
        if (timing := timings.get(check.case)) is not None:
            case |= {"speedup": timing.speedup, "ref_us": timing.ref_us, "cand_us": timing.cand_us}
        cases.append(case)
    return cases


def _verdict_cases(verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "case": c.case,
            "rho": c.rho,
            "rho_ci": _pair(c.rho_ci.low, c.rho_ci.high),
            "gain": 1.0 / c.rho if c.rho > 0 else None,
            "floor": c.floor,
            "slot_bias": c.slot_bias,
        }
        for c in verdict.cases
    ]


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    names = (
        "status",
        "message",
        "sha256",
        "speedup",
        "cand_us",
        "decision",
        "reason",
        "rho",
        "rho_low",
        "rho_high",
        "floor",
        "passed",
        "seq",
    )
    view = {name: value for name in names if (value := getattr(outcome, name)) not in (None, "")}
    if outcome.claimed_speedup is not None:
        view["naive_speedup"] = outcome.claimed_speedup
    return view


def _pair(low: float, high: float) -> list[float]:
    return [low, high]
