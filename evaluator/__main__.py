"""`python -m evaluator`: the judge's command line. Standard library, numpy, scipy, PyYAML and torch suffice.

    run JOBFILE --result RESULTFILE     one job, as the daemon starts it: progress on stdout, a result file
    evaluate|check|bench|profile|robustness PROBLEM FILE    one candidate
    ab PROBLEM CANDIDATE [CHAMPION]     symmetric A/B; without a champion, against the reference
    floor|baseline PROBLEM [CHAMPION]
    qualify [--quick] [--control ID]    the controls
    worker --spool DIR [--device D]     jobs out of a directory that another host fills

Exit: 0 done, 1 a negative verdict, 2 usage, 3 environment, 130 or 143 stopped by a signal. The judge dies with its parent.
Not for: rendering beyond plain lines (`ratchet` does that).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from evaluator.devices.opening import open_device
from evaluator.devices.processor import raise_judge
from evaluator.errors import EvaluatorError
from evaluator.gate import read_source
from evaluator.jobfile import read_job, require_place, write_result
from evaluator.judge import jobs
from evaluator.parent import die_with_parent
from evaluator.records import Decision, Job, JobKind, Progress, Result, Source, Status, dumps, encode, progress_line
from evaluator.spool.places import Spool
from evaluator.spool.worker import LEASE_S, Worker
from problems.errors import ProblemError

KINDS = {
    "check": "build one candidate and compare its outputs; nothing is timed",
    "bench": "measure one candidate in short; nothing is decided by it",
    "evaluate": "the protected measurement of one candidate",
    "profile": "what one candidate spends its time on, as it tells itself",
    "robustness": "one candidate on many seeds, other sizes and repeated calls",
    "ab": "symmetric A/B of two candidates, or of one against the reference",
    "floor": "what identical sources differ by on this device, now",
    "baseline": "the reference itself, eager and compiled",
    "qualify": "the controls against the evaluator itself",
}
CANDIDATE_KINDS = ("evaluate", "check", "bench", "profile", "robustness")
REPORTS = ("evaluation", "verdict", "floor", "baseline", "robustness", "profiled", "qualification")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code."""
    die_with_parent()
    signal.signal(signal.SIGTERM, _stop)
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (EvaluatorError, ProblemError) as error:
        if getattr(options, "json", False):
            print(json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}, ensure_ascii=False))
        _complain(error.message, error.hint)
        return error.code
    except KeyboardInterrupt:
        print("evaluator: stopped", file=sys.stderr)
        return 128 + signal.SIGINT


def _stop(number: int, _: object) -> NoReturn:
    """End in order, so that processes and directories of the job go with it."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def run_job(options: argparse.Namespace) -> int:
    """`run`: read a job file, write its result file atomically."""
    job = read_job(options.jobfile)
    require_place(options.result)
    write_result(options.result, _measure(job, options, _progress_line))
    return 0


def run_worker(options: argparse.Namespace) -> int:
    """`worker`: one judge a job, in processes of their own; told to end, it gives the job at hand back."""
    open_device(options.device)
    judge = (sys.executable, "-m", "evaluator", "run", "--cache", str(options.cache))
    worker = Worker(Spool(options.spool), options.device, _say, judge=judge, lease_s=options.lease)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.end())
    _say(f"worker {worker.name} on {options.device}, spool {options.spool}")
    worker.work(once=options.once)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_by_hand(options: argparse.Namespace) -> int:
    """Every other command: build the job from the command line."""
    job = Job(
        id=f"hand|{options.problem}|{options.kind}",
        kind=JobKind(options.kind),
        problem=options.problem,
        candidate=_source(getattr(options, "candidate", None)),
        champion=_source(getattr(options, "champion", None)),
        profile=options.profile,
        device=options.device,
        cases=tuple(options.case) if options.case else None,
        options=_job_options(options),
    )
    result = _measure(job, options, _progress_line if options.json else _progress_words)
    print(dumps(result) if options.json else _summary(result))
    return 0 if _is_positive(result) else 1


def _measure(job: Job, options: argparse.Namespace, report: jobs.Report) -> Result:
    raise_judge()
    os.sched_setaffinity(0, open_device(job.device).cores.judge)
    return jobs.run(job, cache=options.cache, report=report)


def _is_positive(result: Result) -> bool:
    if result.status is not Status.OK:
        return False
    if result.verdict is not None:
        return result.verdict.decision is Decision.FASTER
    return result.qualification is None or result.qualification.qualified


def _summary(result: Result) -> str:
    """A plain reading of a result: status, message, then every figure as indented JSON."""
    report = {k: v for k, v in encode(result).items() if k in REPORTS and v}
    for part in report.values():
        part.pop("trials", None)
    lines = [f"{result.status.value}  {result.message}".rstrip()]
    lines += [f"hint: {result.hint}"] if result.hint else []
    lines += [result.log.rstrip()] if result.log else []
    return "\n".join([*lines, json.dumps(report, indent=1, ensure_ascii=False)])


def _progress_line(progress: Progress) -> None:
    print(progress_line(progress), flush=True)


def _progress_words(progress: Progress) -> None:
    count = f" {progress.done}/{progress.total}" if progress.total else ""
    print(f"{progress.step} {progress.detail}{count}".rstrip(), file=sys.stderr, flush=True)


def _source(path: str | None) -> Source | None:
    if path is None:
        return None
    text = read_source(path)
    return Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def _job_options(options: argparse.Namespace) -> dict[str, Any]:
    named = {name: getattr(options, name, None) for name in ("seeds", "trials", "pairs", "calls", "quick", "naive", "controls")}
    chosen = {name: value for name, value in named.items() if value}
    return chosen | ({"gate": False} if options.no_gate else {})


def _complain(message: str, hint: str) -> None:
    print(f"evaluator: {message}" + (f"\n  mend: {hint}" if hint else ""), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description="Ratchet's protected evaluator.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="one job file, one result file")
    run.add_argument("jobfile", type=Path)
    run.add_argument("--result", type=Path, required=True)
    run.set_defaults(command=run_job)
    _cache_option(run)
    worker = commands.add_parser("worker", help="answer the jobs of a spool until told to end")
    worker.add_argument("--spool", type=Path, required=True, help="the directory that this host shares with whoever asks")
    worker.add_argument("--device", default="cpu", help="what this worker's jobs run on (default: %(default)s)")
    worker.add_argument("--lease", type=float, default=LEASE_S, help="seconds without a heartbeat until a job is taken up again")
    worker.add_argument("--once", action="store_true", help="end when the queue is empty")
    worker.set_defaults(command=run_worker)
    _cache_option(worker)
    for kind, about in KINDS.items():
        _add_kind(commands, kind, about)
    return parser


def _add_kind(commands: Any, kind: str, about: str) -> None:
    command = commands.add_parser(kind, help=about, description=about)
    command.set_defaults(command=run_by_hand, kind=kind)
    if kind != "qualify":
        command.add_argument("problem", help="a key (builtin:scan) or a path")
    else:
        command.set_defaults(problem="builtin:gemm_epilogue")
        command.add_argument("--quick", action="store_true", help="one control a family")
        command.add_argument("--control", action="append", dest="controls", help="only this control (may be repeated)")
    if kind in (*CANDIDATE_KINDS, "ab"):
        command.add_argument("candidate", help="the candidate's source file")
    if kind in ("ab", "floor"):
        command.add_argument("champion", nargs="?", help="the champion's source file; left out: the reference")
    command.add_argument("--json", action="store_true", help="progress and result as JSON, one object a line")
    command.add_argument("--profile", choices=("open", "seed"), default="open", help="static gate profile")
    command.add_argument("--device", default="cpu")
    command.add_argument("--case", action="append", help="only this case (may be repeated)")
    for name in ("--seeds", "--trials", "--pairs", "--calls"):
        command.add_argument(name, type=int)
    command.add_argument("--naive", action="store_true", help="on a refusal, also say what a naive evaluator would have believed")
    command.add_argument("--no-gate", action="store_true", help="leave the static gate out (to see what the protocol stops by itself)")
    _cache_option(command)


def _cache_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cache", type=Path, default=default_cache(), help="where builds are kept (default: %(default)s)")


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/ratchet`, else `~/.cache/ratchet`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ratchet"


if __name__ == "__main__":
    sys.exit(main())
