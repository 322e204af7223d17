"""Orchestrator's tools that only read: `read_record` and `read_experiment`.

Invariant: nothing is journalled by them but their answer. Not for: candidates' texts of other runs.
"""

from __future__ import annotations

from typing import Any

from agents.errors import ToolError
from agents.tools.desk import Desk, find_experiment
from agents.tools.reckoning import reckon
from agents.tools.tool import Tool, ToolInput
from agents.tools.views import experiment_view


class ReadRecord(ToolInput, frozen=True, kw_only=True):
    """Names one record of the journal."""

    seq: int


class ReadExperiment(ToolInput, frozen=True, kw_only=True):
    """Names one experiment."""

    experiment: str


def make_read_record(desk: Desk) -> Tool[ReadRecord]:
    """One record of the journal."""

    async def run(asked: ReadRecord, cause: str) -> dict[str, Any]:
        if not 1 <= asked.seq <= desk.port.state.seq:
            raise ToolError(f"there is no record {asked.seq}", f"records run from 1 to {desk.port.state.seq}")
        record = await desk.port.read(asked.seq)
        return {"seq": record.seq, "kind": record.kind, "actor": record.actor, "data": record.data}

    return Tool(name="read_record", about="Read one record of this run's journal by its number.", takes=ReadRecord, run=run)


def make_read_experiment(desk: Desk) -> Tool[ReadExperiment]:
    """One experiment, with prediction beside outcome."""

    async def run(asked: ReadExperiment, cause: str) -> dict[str, Any]:
        experiment = find_experiment(desk.port, asked.experiment)
        reckoning = await reckon(desk.port, experiment)
        return {**experiment_view(experiment), **reckoning.view()}

    about = "Read one experiment: prediction, measurements, report, and the surprise it would be reconciled with."
    return Tool(name="read_experiment", about=about, takes=ReadExperiment, run=run)
