"""Job files and result files: what the daemon hands a judge, and what it gets back.

Invariant: a job file that cannot be used is a UsageError that says why; a result file is there whole or not at all.
Not for: whether a job makes sense for its problem (`judge.sense`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from evaluator.errors import EnvironmentFault, EvaluatorError, UsageError
from evaluator.records import FORMAT_VERSION, Job, Result, decode, dumps


def read_job(path: Path) -> Job:
    """The job in a file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", "give the path of a job file") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", "a job file holds one Job as JSON") from error
    version = data.get("v", FORMAT_VERSION) if isinstance(data, dict) else FORMAT_VERSION
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise EvaluatorError(f"the job is of format {version}, this evaluator knows {FORMAT_VERSION}", "update the evaluator on this host")
    try:
        return decode(Job, data)
    except ValueError as error:
        raise UsageError(f"{path} is not a job: {error}", "a job file holds one Job as JSON") from error


def require_place(path: Path) -> None:
    """Refuse before anything is measured where the result could not be written."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise UsageError(f"the result cannot be written to {path}", "name a file in a directory that exists and can be written")


def read_result(path: Path) -> Result:
    """The result in a file; ValueError where it is none."""
    return decode(Result, json.loads(path.read_text(encoding="utf-8")))


def write_result(path: Path, result: Result) -> None:
    """Write beside the target, then put it in place."""
    text = dumps(result)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise EnvironmentFault(f"the result cannot be written to {path}: {error.strerror}", "make room or choose another place") from error
