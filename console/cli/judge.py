"""`evaluate`, `check`, `bench`, `profile`, `ab`, `robustness`, `floor`, `baseline`, `qualify`: ask the judge once.

Invariant: the judge runs as `python -m evaluator` in its own process group; Ctrl-C ends the whole
group, says so, and exits 130; a termination does the same and exits with 128 and its number. The exit
code is the verdict's (`console.views.verdicts`).
Not for: measuring anything here.
"""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from console.candidates import read_candidate
from console.cli import output
from console.cli.options import AsJson, Problem
from console.cli.progress import ProgressLine
from console.errors import UsageFault
from console.judge import run_job
from console.views import verdicts
from evaluator.records import Job, JobKind, Source, encode

Candidate = Annotated[Path, typer.Argument(metavar="FILE", help="The candidate: one Python file.")]
Champion = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The file it is compared with; without it, the reference.")]
Device = Annotated[str, typer.Option("--device", help="Device to measure on.")]
Profile = Annotated[str, typer.Option("--profile", help="Static gate profile: open or seed.")]
CaseNames = Annotated[list[str] | None, typer.Option("--case", help="Only this case; may be repeated.", show_default="all")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Draws of weights and inputs to compare.", show_default="the judge's")]
Trials = Annotated[int | None, typer.Option("--trials", min=1, help="Timed calls a case.", show_default="the judge's")]
Pairs = Annotated[int | None, typer.Option("--pairs", min=1, help="Counterbalanced pairs in each order.", show_default="the judge's")]
Naive = Annotated[bool, typer.Option("--naive", help="On a refusal, also measure what a naive evaluator would have believed.")]
NoGate = Annotated[bool, typer.Option("--no-gate", help="Leave the static gate out, to see what the protocol stops by itself.")]

QUALIFY_PROBLEM = "builtin:gemm_epilogue"


def register(app: typer.Typer) -> None:
    """Add the judge's commands."""
    for name, command in _COMMANDS.items():
        app.command(name)(command)


def evaluate(
    problem: Problem,
    file: Candidate,
    device: Device = "cpu",
    profile: Profile = "open",
    case: CaseNames = None,
    seeds: Seeds = None,
    trials: Trials = None,
    naive: Naive = False,
    no_gate: NoGate = False,
    as_json: AsJson = False,
) -> None:
    """Measure one candidate: correctness on fresh seeds, protected timing, verdict.

    Exits 0 when it is correct and honest, else 1; whether it is faster stands in the report.
    """
    job = _job(JobKind.EVALUATE, problem, device, case, seeds=seeds, trials=trials, naive=naive, no_gate=no_gate)
    _ask(replace(job, candidate=read_candidate(file), profile=_known_profile(profile)), as_json=as_json)


def check(
    problem: Problem,
    file: Candidate,
    device: Device = "cpu",
    profile: Profile = "open",
    case: CaseNames = None,
    seeds: Seeds = None,
    naive: Naive = False,
    no_gate: NoGate = False,
    as_json: AsJson = False,
) -> None:
    """Build one candidate and compare its outputs with the reference's; nothing is timed."""
    job = _job(JobKind.CHECK, problem, device, case, seeds=seeds, naive=naive, no_gate=no_gate)
    _ask(replace(job, candidate=read_candidate(file), profile=_known_profile(profile)), as_json=as_json)


def bench(
    problem: Problem,
    file: Candidate,
    device: Device = "cpu",
    profile: Profile = "open",
    case: CaseNames = None,
    trials: Trials = None,
    as_json: AsJson = False,
) -> None:
    """Measure one candidate in short, while it is being written: nothing is decided by what this says."""
    job = _job(JobKind.BENCH, problem, device, case, trials=trials)
    _ask(replace(job, candidate=read_candidate(file), profile=_known_profile(profile)), as_json=as_json)


def profile(
    problem: Problem,
    file: Candidate,
    device: Device = "cpu",
    case: CaseNames = None,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="Calls to look at.", show_default="the judge's")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what one candidate spends its time on, as its own process tells it."""
    _ask(replace(_job(JobKind.PROFILE, problem, device, case, calls=calls), candidate=read_candidate(file)), as_json=as_json)


def robustness(
    problem: Problem,
    file: Candidate,
    device: Device = "cpu",
    profile: Profile = "open",
    seeds: Seeds = None,
    as_json: AsJson = False,
) -> None:
    """Try one candidate on many seeds, other sizes and repeated calls; nothing is timed."""
    job = _job(JobKind.ROBUSTNESS, problem, device, None, seeds=seeds)
    _ask(replace(job, candidate=read_candidate(file), profile=_known_profile(profile)), as_json=as_json)


def ab(
    problem: Problem,
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The file that may be faster.")],
    champion: Champion = None,
    device: Device = "cpu",
    profile: Profile = "open",
    case: CaseNames = None,
    pairs: Pairs = None,
    as_json: AsJson = False,
) -> None:
    """Compare two candidates symmetrically. Exits 0 when the first is faster by both clocks, else 1."""
    job = replace(_job(JobKind.AB, problem, device, case, pairs=pairs), profile=_known_profile(profile))
    _ask(replace(job, candidate=read_candidate(candidate), champion=_champion(champion)), as_json=as_json)


def floor(
    problem: Problem,
    file: Champion = None,
    device: Device = "cpu",
    case: CaseNames = None,
    pairs: Pairs = None,
    as_json: AsJson = False,
) -> None:
    """Measure the noise floor: what identical sources differ by on this device, now."""
    _ask(replace(_job(JobKind.FLOOR, problem, device, case, pairs=pairs), champion=_champion(file)), as_json=as_json)


def baseline(
    problem: Problem,
    device: Device = "cpu",
    case: CaseNames = None,
    trials: Trials = None,
    as_json: AsJson = False,
) -> None:
    """Time the reference itself, eager and through torch.compile."""
    _ask(_job(JobKind.BASELINE, problem, device, case, trials=trials), as_json=as_json)


def qualify(
    quick: Annotated[bool, typer.Option("--quick", help="One control a family.")] = False,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Run the controls against the evaluator itself. Exits 0 when every control got what it must."""
    _ask(_job(JobKind.QUALIFY, QUALIFY_PROBLEM, device, None, quick=quick), as_json=as_json)


def _job(kind: JobKind, problem: str, device: str, cases: list[str] | None, *, no_gate: bool = False, **options: int | None) -> Job:
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value}
    from problems.registry import load  # reads manifests: only where a problem is named

    found = load(problem)
    for name in cases or ():
        found.case(device, name)  # said at once, not after the wait for the device
    return Job(
        id=f"kernel|{problem}|cli-{secrets.token_hex(4)}|1",
        kind=kind,
        problem=found.key,
        device=device,
        cases=tuple(cases) if cases else None,
        options=chosen | ({"gate": False} if no_gate else {}),
    )


def _ask(job: Job, *, as_json: bool) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, _end)
    with ProgressLine(sys.stderr) as progress:
        result = run_job(job, report=progress.show)
    output.answer(verdicts.report(result, width=output.width()), encode(result), as_json=as_json)
    raise typer.Exit(verdicts.exit_code(result))


def _end(number: int, _: object) -> None:
    """Leave as Ctrl-C does: the judge's group ends and its files go first."""
    raise SystemExit(128 + number)


def _champion(path: Path | None) -> Source | None:
    return read_candidate(path) if path is not None else None


def _known_profile(profile: str) -> str:
    if profile not in ("open", "seed"):
        raise UsageFault(f"there is no profile {profile!r}", "use --profile open or --profile seed")
    return profile


_COMMANDS: dict[str, Callable[..., None]] = {
    "evaluate": evaluate,
    "check": check,
    "bench": bench,
    "profile": profile,
    "ab": ab,
    "robustness": robustness,
    "floor": floor,
    "baseline": baseline,
    "qualify": qualify,
}
