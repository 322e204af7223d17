"""What the records of a journal must be to each other.

No request id has two results, none is started again after its result, every result was asked for;
frozen predictions and documents match their hashes; a promotion has its gate's yes; candidate texts
beside the journal are what they are named after.
Invariant: pure but for reading candidate texts; one pass, memory by ids only.
Not for: the chain (`state.chain`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from state.events import (
    FORMAT_VERSION,
    KINDS,
    CandidateSubmitted,
    ExperimentOpened,
    GateDecided,
    JobFinished,
    JobStarted,
    Promoted,
    Record,
    WorldModelEdited,
)
from state.prediction import prediction_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, at one line."""

    line: int
    why: str
    chain: bool = False
    """Whether the line itself is damaged, so that nothing after it was read."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


class Consistency:
    """Collects problems while records pass by."""

    def __init__(self, *, candidates: Path) -> None:
        self._candidates = candidates
        self._started: set[str] = set()
        self._finished: dict[str, int] = {}
        self._approved: set[str] = set()
        self._promoted: list[tuple[int, str]] = []
        self._problems: list[Problem] = []

    def add(self, record: Record) -> None:
        """Look at one record."""
        shape = KINDS.get(record.kind)
        if shape is None:
            return
        try:
            data = msgspec.convert(record.data, shape)
        except msgspec.ValidationError as error:
            if record.v <= FORMAT_VERSION:
                self._note(record.seq, f"the data of this {record.kind!r} record is not valid: {error}")
            return
        check = self._checks().get(record.kind)
        if check is not None:
            check(record.seq, data)

    def problems(self) -> list[Problem]:
        """Everything found, by line."""
        unapproved = [
            Problem(line=line, why=f"candidate {sha256[:12]} was promoted without its gate's yes")
            for line, sha256 in self._promoted
            if sha256 not in self._approved
        ]
        return sorted(self._problems + unapproved, key=lambda problem: problem.line)

    def _checks(self) -> dict[str, Callable[[int, Any], None]]:
        return {
            "job.started": self._job_started,
            "job.finished": self._job_finished,
            "experiment.opened": self._opened,
            "world_model.edited": self._edited,
            "candidate.submitted": self._submitted,
            "gate.decided": self._decided,
            "promotion": self._promotion,
        }

    def _note(self, line: int, why: str) -> None:
        self._problems.append(Problem(line=line, why=why))

    def _job_started(self, line: int, data: JobStarted) -> None:
        if data.request in self._finished:
            self._note(line, f"request {data.request} was started again after its result in line {self._finished[data.request]}")
        self._started.add(data.request)

    def _job_finished(self, line: int, data: JobFinished) -> None:
        if data.request in self._finished:
            self._note(line, f"request {data.request} has a second result; the first is in line {self._finished[data.request]}")
        elif data.request not in self._started:
            self._note(line, f"request {data.request} has a result and was never started")
        if data.result.job != data.request:
            self._note(line, f"request {data.request} was answered with the result of {data.result.job}")
        self._finished.setdefault(data.request, line)

    def _opened(self, line: int, data: ExperimentOpened) -> None:
        if prediction_sha256(data.prediction) != data.prediction_sha256:
            self._note(line, f"the frozen prediction of {data.experiment} does not match its hash")

    def _edited(self, line: int, data: WorldModelEdited) -> None:
        if hashlib.sha256(data.text.encode()).hexdigest() != data.sha256:
            self._note(line, "the world model's text does not match its hash")

    def _submitted(self, line: int, data: CandidateSubmitted) -> None:
        if not self._candidates.is_dir():
            return
        path = self._candidates / f"{Path(data.sha256).name}.py"
        if not path.is_file():
            self._note(line, f"the text of candidate {data.sha256[:12]} is not in {self._candidates.name}/")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != data.sha256:
            self._note(line, f"{self._candidates.name}/{path.name} is not the text it is named after")

    def _decided(self, line: int, data: GateDecided) -> None:
        if data.promoted:
            self._approved.add(data.sha256)

    def _promotion(self, line: int, data: Promoted) -> None:
        self._promoted.append((line, data.sha256))
