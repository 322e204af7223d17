"""Jobs, results and verdicts: what crosses the boundary of the judge.

Standard library only, so that every package (and a bare GPU host) can import it without torch.
Invariant: a record is plain data.
Not for: anything that decides. Statistics, gates and status rules live beside the judge.
"""

from evaluator.records.encoding import decode, dumps, encode
from evaluator.records.jobs import FORMAT_VERSION, Job, JobKind, Progress, Source, Status
from evaluator.records.lines import progress_line, read_progress_line
from evaluator.records.results import (
    Audit,
    Baseline,
    BaselineCase,
    CaseCheck,
    CaseRatio,
    CaseTiming,
    Claim,
    ControlOutcome,
    Decision,
    Evaluation,
    Floor,
    FloorCase,
    Interval,
    Profile,
    ProfileCase,
    ProfiledOperation,
    Qualification,
    Result,
    Robustness,
    RobustnessPart,
    Verdict,
)

__all__ = [
    "FORMAT_VERSION",
    "Audit",
    "Baseline",
    "BaselineCase",
    "CaseCheck",
    "CaseRatio",
    "CaseTiming",
    "Claim",
    "ControlOutcome",
    "Decision",
    "Evaluation",
    "Floor",
    "FloorCase",
    "Interval",
    "Job",
    "JobKind",
    "Profile",
    "ProfileCase",
    "ProfiledOperation",
    "Progress",
    "Qualification",
    "Result",
    "Robustness",
    "RobustnessPart",
    "Source",
    "Status",
    "Verdict",
    "decode",
    "dumps",
    "encode",
    "progress_line",
    "read_progress_line",
]
