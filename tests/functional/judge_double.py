"""A judge for tests of the daemon: a real process that speaks the job protocol and measures nothing.

What it answers is written in the candidate's text, e.g. `# double: speed=1.5 sleep=0.2`:
`speed` over the reference, `status` of an evaluation, `sleep` in seconds, `wrong` fails robustness.
`JUDGE_DOUBLE_DIR` names a directory: `starts.log` gets a line per start, `finished.log` one per result;
a file `plan` there is read line by line, one taken per start: `die`, `silent`, `garbage`, `other`,
`environment`, `usage`, `error`, `hang`, `fork`, `chatty`, `ok`.
Needs the checkout on PYTHONPATH.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from evaluator import records as r

FINGERPRINT = {"sha256": "f" * 64}


def main() -> int:
    job = r.decode(r.Job, json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    result_file = Path(sys.argv[3])
    directory = Path(os.environ["JUDGE_DOUBLE_DIR"])
    how = take(directory / "plan")
    log(directory / "starts.log", f"{job.id} {job.kind.value} {os.getpid()} {os.getpgrp()}")
    print(r.progress_line(r.Progress(job=job.id, step="timing", detail="block 1", done=1, total=2)), flush=True)
    code = misbehave(how, job, result_file)
    if code is not None:
        return code
    time.sleep(float(told(job.candidate).get("sleep", os.environ.get("JUDGE_DOUBLE_SLEEP", "0"))))
    write(result_file, r.dumps(answer(job)))
    log(directory / "finished.log", job.id)
    return 0


def misbehave(how: str, job: r.Job, result_file: Path) -> int | None:
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "silent":
        sys.stderr.write("something \x1b[31mred\x1b[0m went wrong\n" * 3)
        return 1
    if how == "garbage":
        write(result_file, '{"job": ')
        return 0
    if how == "other":
        write(result_file, r.dumps(r.Result(job="another", kind=job.kind, status=r.Status.OK)))
        return 0
    if how == "environment":
        sys.stderr.write("bubblewrap is missing\ninstall it: apt-get install bubblewrap\n")
        return 3
    if how == "usage":
        sys.stderr.write("unknown option `pears`\nknown: pairs, seeds\n")
        return 2
    if how == "error":
        write(result_file, r.dumps(r.Result(job=job.id, kind=job.kind, status=r.Status.EVALUATOR_ERROR, message="unquiet machine")))
        return 0
    if how in ("hang", "fork"):
        if how == "fork":
            subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"])
        time.sleep(600)
    if how == "chatty":
        sys.stdout.write("not json\n" + "x" * 100_000 + "\n" + '{"job": 1}\n')
        sys.stdout.flush()
        sys.stderr.write("e" * 3_000_000)
    return None


def answer(job: r.Job) -> r.Result:
    reports = {
        r.JobKind.EVALUATE: evaluation,
        r.JobKind.CHECK: check,
        r.JobKind.AB: verdict,
        r.JobKind.FLOOR: floor,
        r.JobKind.BASELINE: baseline,
        r.JobKind.ROBUSTNESS: robustness,
        r.JobKind.QUALIFY: qualification,
    }
    status = r.Status(told(job.candidate).get("status", "ok")) if job.kind in (r.JobKind.EVALUATE, r.JobKind.CHECK) else r.Status.OK
    report = reports[job.kind](job) if status is r.Status.OK else {}
    return r.Result(
        job=job.id,
        kind=job.kind,
        status=status,
        problem=job.problem,
        problem_sha256=job.problem_sha256 or "",
        source_sha256=job.candidate.sha256 if job.candidate else None,
        profile=job.profile,
        fingerprint=FINGERPRINT,
        device_s=0.5,
        wall_s=0.5,
        **report,
    )


def check(job: r.Job) -> dict:
    return {}


def evaluation(job: r.Job) -> dict:
    speed = speed_of(job.candidate)
    audit = r.Audit(event_us=100 / speed, wall_us=101 / speed, overhead_us=1, slack_us=0.1, agrees=True)
    interval = r.Interval(low=speed * 0.98, high=speed * 1.02)
    timing = r.CaseTiming(
        case="small", ref_us=100, cand_us=100 / speed, speedup=speed, speedup_ci=interval, speedup_mean=speed,
        speedup_bound=speed, trials=10, blocks=5, voided=0, audit=audit,
    )  # fmt: skip
    return {
        "evaluation": r.Evaluation(
            correct=True, fast1=speed > 1, fast1_raw=speed > 1, speedup=speed, speedup_ci=interval, speedup_bound=speed, score=speed,
            timings=(timing,),
        )
    }  # fmt: skip


def verdict(job: r.Job) -> dict:
    rho = speed_of(job.champion) / speed_of(job.candidate)
    interval = r.Interval(low=rho * 0.995, high=rho * 1.005)
    decision = r.Decision.FASTER if rho < 0.98 else r.Decision.SLOWER if rho > 1.02 else r.Decision.UNRESOLVED
    case = r.CaseRatio(case="small", rho=rho, rho_ci=interval, rho_wall=rho, rho_wall_ci=interval, slot_bias=1, floor=0.01, pairs=20)
    return {
        "verdict": r.Verdict(
            decision=decision, reason="by the double", rho=rho, rho_ci=interval, rho_wall=rho, rho_wall_ci=interval, floor=0.01,
            cases=(case,), champion_sha256=job.champion.sha256 if job.champion else None, candidate_sha256=job.candidate.sha256,
            outputs_verified=40,
        )
    }  # fmt: skip


def floor(job: r.Job) -> dict:
    interval = r.Interval(low=0.995, high=1.005)
    case = r.FloorCase(
        case="small", floor=0.01, rho=1, rho_ci=interval, rho_wall=1, rho_wall_ci=interval, slot_bias=1, pairs=20, spread=0.01
    )
    return {"floor": r.Floor(floor=0.01, cases=(case,), source_sha256=None)}


def baseline(job: r.Job) -> dict:
    return {
        "baseline": r.Baseline(eager_us=100, compiled_us=90, cases=(r.BaselineCase(case="small", eager_us=100, compiled_us=90, trials=5),))
    }


def robustness(job: r.Job) -> dict:
    passed = "wrong" not in told(job.candidate)
    parts = tuple(
        r.RobustnessPart(name=name, passed=passed, tests=4) for name in ("many seeds", "repeated calls", "input mutation", "sizes")
    )
    return {"robustness": r.Robustness(passed=passed, parts=parts, not_checked=("memory checker",))}


def qualification(job: r.Job) -> dict:
    passed = os.environ.get("JUDGE_DOUBLE_UNQUALIFIED") != "1"
    control = r.ControlOutcome(control="clock in python", profile="open", gate=True, expected="forbidden", got="forbidden", passed=passed)
    return {"qualification": r.Qualification(qualified=passed, quick=bool(job.options.get("quick")), controls=(control,))}


def speed_of(source: r.Source | None) -> float:
    return float(told(source).get("speed", "1"))


def told(source: r.Source | None) -> dict[str, str]:
    line = re.search(r"# double: (.*)", source.text) if source else None
    return dict(pair.partition("=")[::2] for pair in line[1].split()) if line else {}


def take(plan: Path) -> str:
    try:
        with plan.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read().splitlines()
            file.seek(0)
            file.truncate()
            file.write("\n".join(lines[1:]))
            return lines[0] if lines else "ok"
    except FileNotFoundError:
        return "ok"


def log(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(path)


if __name__ == "__main__":
    sys.exit(main())
