"""The judge as a subprocess: `python -m evaluator run JOBFILE --result RESULTFILE`.

Invariant: the judge has its own process group; whatever ends this call, the group is gone before it
returns. Its output is drained and bounded.
Not for: reading results (`console.views.verdicts`) or the daemon's jobs (`daemon.executors`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

from console.errors import ConsoleError
from console.text import clean
from evaluator.records import Job, Progress, Result, decode, dumps, read_progress_line

JUDGE_VARIABLE = "RATCHET_JUDGE"
PACKAGES = Path(__file__).resolve().parent.parent
_STDERR_LINES = 200
_GRACE_S = 10.0
_LINE_BYTES = 1 << 20


class JudgeFault(ConsoleError):
    """The judge ended without a result; `code` is what it said, else 3."""

    def __init__(self, message: str, hint: str = "", *, code: int = 3) -> None:
        super().__init__(message, hint)
        self.code = code


def run_job(job: Job, *, report: Callable[[Progress], None]) -> Result:
    """Run one job and return its result; a KeyboardInterrupt kills the judge's group first."""
    with tempfile.TemporaryDirectory(prefix="ratchet-ask-") as directory:
        asked, answered = Path(directory) / "job.json", Path(directory) / "result.json"
        asked.write_text(dumps(job), encoding="utf-8")
        process = _start([*judge_command(), str(asked), "--result", str(answered)])
        said: deque[str] = deque(maxlen=_STDERR_LINES)
        reader = threading.Thread(target=_drain, args=(process.stderr, said), daemon=True)
        reader.start()
        try:
            _follow(process.stdout, report)
            code = process.wait()
        finally:
            _end(process)
            reader.join(_GRACE_S)
        if code != 0 or not answered.is_file():
            raise _fault(code, said)
        return decode(Result, json.loads(answered.read_text(encoding="utf-8")))


def judge_command() -> list[str]:
    """The judge; `RATCHET_JUDGE` names another one, as it does for the daemon."""
    other = os.environ.get(JUDGE_VARIABLE)
    return shlex.split(other) if other else [sys.executable, "-m", "evaluator", "run"]


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        # `-m` looks in the working directory first: never let the user's own files stand in for our packages.
        cwd=PACKAGES,
    )


def _follow(stream: IO[str] | None, report: Callable[[Progress], None]) -> None:
    assert stream is not None
    while row := stream.readline(_LINE_BYTES):
        if (progress := read_progress_line(row)) is not None:
            report(progress)


def _drain(stream: IO[str] | None, said: deque[str]) -> None:
    assert stream is not None
    with stream:
        while row := stream.readline(_LINE_BYTES):
            said.append(clean(row.rstrip("\n"), limit=2_000))


def _end(process: subprocess.Popen[str]) -> None:
    """Kill what is left of the group, and wait for it."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None or wish is signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, wish)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    if process.stdout is not None:
        process.stdout.close()


def _fault(code: int, said: deque[str]) -> JudgeFault:
    rows = [row.strip() for row in said if row.strip()]
    if code in (1, 2, 3) and rows and rows[0].startswith("evaluator: "):
        hint = next((row.removeprefix("mend: ") for row in rows[1:] if row.startswith("mend: ")), "")
        return JudgeFault(rows[0].removeprefix("evaluator: "), hint, code=code)
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return JudgeFault(
        f"the judge ended without a result ({how})" + (f": {rows[-1]}" if rows else ""),
        "run it again; `ratchet doctor` checks this machine",
    )
