"""What a run's records say about one candidate of one experiment, as far as the gate asks.

Pure. A later record of a kind replaces an earlier one: the gate looks at the latest evaluation, A/B and
robustness of exactly this text, and at the latest floor of the run.
Invariant: a result that cannot be read, or a fault of the infrastructure, counts as none.
Not for: judging any of it (`daemon.gate`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from evaluator.records import JobKind, Result, Status, decode
from state.events import ExperimentOpened, Record

KINDS = frozenset({"experiment.opened", "candidate.submitted", "job.started", "job.finished", "experiment.reconciled"})
"""Kinds of records that `collect` looks at."""


@dataclass(slots=True)
class Evidence:
    """The records about one candidate, latest of each kind."""

    experiment: str
    sha256: str | None
    opened: ExperimentOpened | None = None
    opened_seq: int | None = None
    submitted_seq: int | None = None
    first_job_seq: int | None = None
    """First job of the experiment, or first measurement of its text anywhere in the run."""
    evaluation: Result | None = None
    verdict: Result | None = None
    robustness: Result | None = None
    floor: Result | None = None
    first_verdict_seq: int | None = None
    reconciled_seq: int | None = None


def collect(records: Iterable[Record], *, experiment: str, sha256: str | None) -> Evidence:
    """Go through the run's records, in order."""
    evidence = Evidence(experiment=experiment, sha256=sha256)
    for record in records:
        if record.kind == "job.started":
            _started(evidence, record)
        elif record.kind == "job.finished":
            _finished(evidence, record)
        elif record.data.get("experiment") == experiment:
            _about(evidence, record)
    return evidence


def _about(evidence: Evidence, record: Record) -> None:
    if record.kind == "experiment.opened" and evidence.opened is None:
        try:
            evidence.opened = msgspec.convert(record.data, ExperimentOpened)
        except msgspec.ValidationError:
            return
        evidence.opened_seq = record.seq
    elif record.kind == "candidate.submitted" and record.data.get("sha256") == evidence.sha256:
        evidence.submitted_seq = evidence.submitted_seq or record.seq
    elif record.kind == "experiment.reconciled":
        evidence.reconciled_seq = record.seq


def _started(evidence: Evidence, record: Record) -> None:
    of_experiment = record.data.get("experiment") == evidence.experiment
    measures = record.data.get("kind") in (JobKind.EVALUATE.value, JobKind.AB.value)
    of_text = evidence.sha256 is not None and record.data.get("candidate") == evidence.sha256 and measures
    if (of_experiment or of_text) and evidence.first_job_seq is None:
        evidence.first_job_seq = record.seq


def _finished(evidence: Evidence, record: Record) -> None:
    data = record.data.get("result")
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == JobKind.FLOOR.value:
        result = _read(data)
        evidence.floor = result if result is not None and result.floor is not None else evidence.floor
    elif kind in _FIELDS and record.data.get("experiment") == evidence.experiment:
        result = _read(data)
        if result is None or result.status is Status.EVALUATOR_ERROR:
            return
        if evidence.sha256 is None or result.source_sha256 != evidence.sha256:
            return
        setattr(evidence, _FIELDS[kind], result)
        if kind == JobKind.AB.value and result.verdict is not None and evidence.first_verdict_seq is None:
            evidence.first_verdict_seq = record.seq


_FIELDS = {JobKind.EVALUATE.value: "evaluation", JobKind.AB.value: "verdict", JobKind.ROBUSTNESS.value: "robustness"}


def _read(data: Any) -> Result | None:
    try:
        return decode(Result, data)
    except ValueError:
        return None
