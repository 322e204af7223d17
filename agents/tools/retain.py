"""Orchestrator's tools that decide what is kept: `bank` and `promote`.

Invariant: `promote` only asks; the gate decides from records. Only an unresolved A/B against the
champion can be banked: a faster candidate asks for promotion, a slower one is not kept.
Not for: stacking, which is an experiment with parts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agents.errors import ToolError
from agents.tools.desk import Desk, find_experiment, standing_candidate
from agents.tools.measure import OfExperiment
from agents.tools.tool import Tool
from state.events import Banked
from state.model import Outcome


def make_bank(desk: Desk) -> Tool[OfExperiment]:
    """Keep a candidate below the floor."""

    async def run(asked: OfExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        sha256 = standing_candidate(experiment)
        banked = _banked(experiment.id, sha256, experiment.verdict, cause)
        record = await desk.port.record("experiment.banked", desk.agent, banked)
        kept = msgspec.convert(record.data, Banked)
        return {
            "experiment": experiment.id,
            "retention": "banked",
            "rho": kept.rho,
            "floor": kept.floor,
            "bank": list(desk.port.state.bank),
        }

    about = "Keep an experiment whose A/B stayed below the floor (unresolved), to be stacked with others later."
    return Tool(name="bank", about=about, takes=OfExperiment, run=run)


def make_promote(desk: Desk) -> Tool[OfExperiment]:
    """Ask the gate."""

    async def run(asked: OfExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        decided = await desk.port.promote(experiment.id, cause=cause)
        return {
            "experiment": experiment.id,
            "promoted": decided.promoted,
            "reason": decided.reason,
            "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in decided.checks],
            "not_checked": list(decided.not_checked),
        }

    about = (
        "Ask the promotion gate to make an experiment's candidate the champion. The gate decides from the records and "
        "names what is missing."
    )
    return Tool(name="promote", about=about, takes=OfExperiment, run=run)


def _banked(experiment: str, sha256: str, verdict: Outcome | None, cause: str) -> Banked:
    if verdict is None or verdict.sha256 != sha256 or verdict.decision is None:
        raise ToolError(f"{experiment}'s candidate has no A/B verdict", f"call `request_ab` with experiment {experiment} first")
    if verdict.decision != "unresolved":
        instead = "ask for its promotion instead" if verdict.decision == "faster" else "there is nothing to keep; reconcile it and go on"
        raise ToolError(f"{experiment}'s A/B is {verdict.decision}, not below the floor", instead)
    rho, low, high, floor = verdict.rho, verdict.rho_low, verdict.rho_high, verdict.floor
    if rho is None or low is None or high is None or floor is None:
        raise ToolError(f"{experiment}'s A/B carries no interval", "ask for it again")
    return Banked(experiment=experiment, sha256=sha256, rho=rho, rho_low=low, rho_high=high, floor=floor, cause=cause)
