"""A run written by hand, record by record: every kind of outcome once, fixed moments, fixed figures.

Not for: claiming that any of these figures were measured; they only have to be told apart.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from evaluator import records as r
from state import events as ev
from state.events import Record
from state.journal import Journal
from state.prediction import prediction_sha256

RUN = "20270114-090000-scan-3f9a"
CASES = ["n1024", "n65536"]
START = datetime.datetime(2027, 1, 14, 9, 0, 0, tzinfo=datetime.UTC)
WORLD_MODEL = """# World model

## Claims
- [c1] 0.80 The scan is bound by memory traffic. (evidence: E1)
- [c2] 0.35 Blocking the scan pays on one core. (evidence: E6)

## Graveyard
- Reading [bold]past the end[/bold] does not pay.
"""

Entry = tuple[str, str, ev.Event]


def sha(name: str) -> str:
    """A content address for a named text."""
    return hashlib.sha256(name.encode()).hexdigest()


def clock() -> Iterator[str]:
    """One moment every eleven seconds."""
    for step in itertools.count():
        yield (START + datetime.timedelta(seconds=11 * step)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_journal(path: Path, entries: list[Entry] | None = None) -> list[Record]:
    """Write the run to `path` and return its records."""
    moments = clock()
    with Journal.open(path, run=RUN, clock=lambda: next(moments)) as journal:
        written = [record for entry in (story() if entries is None else entries) for record in journal.append([entry])]
    folder = path.parent / "candidates"
    folder.mkdir(exist_ok=True)
    for name in ("E1", "E5", "E6", "E7"):
        (folder / f"{sha(name)}.py").write_text(name)
    return written


def story() -> list[Entry]:
    """Every entry of the run."""
    return [*opening(), *promoted(), *failures(), *cheat(), *banked(), *surprised(), *under_way()]


def opening() -> list[Entry]:
    """Creation, qualification, baseline, floor."""
    created = ev.RunCreated(
        title="demo",
        problem="builtin:scan",
        problem_sha256=sha("problem"),
        problem_title="Inclusive scan",
        cases=CASES,
        device="cpu",
        model="scripted",
        profile="open",
        gate="reduced gate (first light)",
    )
    control = r.ControlOutcome(control="clock", profile="open", gate=True, expected="tampered", got="tampered", passed=True)
    qualification = r.Qualification(qualified=True, quick=True, controls=(control,) * 12)
    base = tuple(r.BaselineCase(case=c, eager_us=1830.0, compiled_us=1710.0, trials=40) for c in CASES)
    floor = tuple(_floor_case(c) for c in CASES)
    return [
        ("run.created", "operator", created),
        ("run.state", "daemon", ev.RunStateChanged(state="running")),
        *_job(None, "qualify", r.Result(job="q", kind=r.JobKind.QUALIFY, status=r.Status.OK, qualification=qualification)),
        *_job(None, "baseline", _ok("baseline", baseline=r.Baseline(eager_us=1830.0, compiled_us=1710.0, cases=base))),
        *_job(None, "floor", _ok("floor", floor=r.Floor(floor=0.012, cases=floor, source_sha256=None))),
        ("agent.started", "daemon", ev.AgentStarted(agent="orchestrator", role="orchestrator", task="make the scan fast")),
        ("agent.reply", "orchestrator", ev.AgentReply(agent="orchestrator", turn=0, text="I start with memory traffic.", usage=_USAGE)),
    ]


def promoted() -> list[Entry]:
    """E1: a good idea that is promoted."""
    return [
        *_opened("E1", "Single-pass scan in C++", 1.30, 1.80),
        *_judged("E1", speedup=1.62, rho=0.617, decision=r.Decision.FASTER),
        _report("E1", "Single pass wins", final=True),
        _reconciled("E1", measured=1.62, surprise=0.31, covered=True, hypothesis="confirmed", performance="faster"),
        _gate("E1", promoted=True, reason="every check passed"),
        (
            "promotion",
            "daemon",
            ev.Promoted(
                number=1,
                experiment="E1",
                sha256=sha("E1"),
                previous=None,
                rho=0.617,
                speedup=1.62,
                champion_us=1129.6,
                gate="reduced gate (first light)",
                not_checked=["memory checker"],
            ),
        ),
    ]


def failures() -> list[Entry]:
    """E2 is incorrect, E3 does not compile."""
    wrong = r.Result(
        job="x",
        kind=r.JobKind.CHECK,
        status=r.Status.INCORRECT,
        message="case n65536: 1 of 65536 elements differ, first at [65535]",
        source_sha256=sha("E2"),
        evaluation=_evaluation(correct=False, speedup=None),
    )
    broken = r.Result(
        job="x",
        kind=r.JobKind.CHECK,
        status=r.Status.COMPILE_ERROR,
        message="error: expected ';' before '}' token",
        log="scan.cpp:12:3: error: expected ';' before '}' token\n",
        source_sha256=sha("E3"),
    )
    return [
        *_opened("E2", "Skip the last block", 1.05, 1.20),
        *_job("E2", "check", wrong),
        _report("E2", "The last block is needed"),
        _reconciled(
            "E2", measured=None, surprise=None, covered=None, hypothesis="untested", performance="untested", correctness="incorrect"
        ),
        *_opened("E3", "Unrolled inner loop", 1.02, 1.10),
        *_job("E3", "check", broken),
        _report("E3", "Did not compile"),
    ]


def cheat() -> list[Entry]:
    """E4: a cheat that a naive evaluator believes."""
    refused = r.Result(
        job="x",
        kind=r.JobKind.EVALUATE,
        status=r.Status.TAMPERED,
        message="the answer came before the post: outputs of earlier inputs",
        hint="compute from the inputs of this call",
        source_sha256=sha("E4"),
        evaluation=_evaluation(correct=False, speedup=None, naive=r.Claim(correct=True, speedup=41.3, detail="one fixed input")),
    )
    return [
        *_opened("E4", "Remember the answer", 5.0, 50.0),
        *_job("E4", "evaluate", refused),
        _report("E4", "Refused by the evaluator"),
    ]


def banked() -> list[Entry]:
    """E5: faster by less than the floor."""
    data = ev.Banked(experiment="E5", sha256=sha("E5"), rho=0.994, rho_low=0.985, rho_high=1.003, floor=0.012)
    return [
        *_opened("E5", "Prefetch the next block", 1.00, 1.03),
        *_judged("E5", speedup=1.63, rho=0.994, decision=r.Decision.UNRESOLVED),
        _report("E5", "Below the floor", final=True),
        ("experiment.banked", "orchestrator", data),
    ]


def surprised() -> list[Entry]:
    """E6: promoted, far beyond its prediction; a claim moves and the world model is edited."""
    change = ev.ClaimChange(claim="c2", before=0.70, after=0.35, why="one core gains as well", evidence=["E6"])
    edit = ev.WorldModelEdited(sha256=sha(WORLD_MODEL), lines=8, text=WORLD_MODEL, changes=[change], why="E6 contradicts c2")
    return [
        *_opened("E6", "Vectorised prefix in registers", 1.02, 1.10),
        *_judged("E6", speedup=2.41, rho=0.671, decision=r.Decision.FASTER),
        _report("E6", "Registers win by far", final=True),
        _reconciled("E6", measured=1.49, surprise=8.7, covered=False, hypothesis="refuted", performance="faster", changes=[change]),
        ("world_model.edited", "orchestrator", edit),
        _gate("E6", promoted=True, reason="every check passed"),
        (
            "promotion",
            "daemon",
            ev.Promoted(
                number=2,
                experiment="E6",
                sha256=sha("E6"),
                previous=sha("E1"),
                rho=0.671,
                speedup=2.41,
                champion_us=759.3,
                gate="reduced gate (first light)",
                not_checked=["memory checker"],
            ),
        ),
    ]


def under_way() -> list[Entry]:
    """E7 is being evaluated, a nudge waits, a pause is asked for."""
    return [
        *_opened("E7", "Two streams, interleaved", 1.01, 1.05),
        ("candidate.submitted", "worker:E7", ev.CandidateSubmitted(experiment="E7", sha256=sha("E7"), bytes=2048)),
        ("job.started", "daemon", ev.JobStarted(request="kernel|builtin:scan|E7|1", kind="evaluate", experiment="E7", candidate=sha("E7"))),
        ("nudge.queued", "operator", ev.NudgeQueued(nudge="N1", text="try \x1b[31mSIMD\x1b[0m [red]now[/red]")),
        ("note", "daemon", ev.Note(text="slot bias above 1 % in E6", level="warning")),
        ("run.control", "operator", ev.RunControl(action="pause")),
        ("run.state", "daemon", ev.RunStateChanged(state="draining", in_flight=["kernel|builtin:scan|E7|1"])),
    ]


_USAGE = ev.Usage(input_tokens=1200, output_tokens=340, cost_usd=None)


def _ok(kind: str, **fields: object) -> r.Result:
    return r.Result(job="x", kind=r.JobKind(kind), status=r.Status.OK, **fields)  # type: ignore[arg-type]


def _floor_case(case: str) -> r.FloorCase:
    near = r.Interval(low=0.991, high=1.009)
    return r.FloorCase(case=case, floor=0.012, rho=1.0, rho_ci=near, rho_wall=1.0, rho_wall_ci=near, slot_bias=1.001, pairs=20, spread=0.02)


def _job(experiment: str | None, kind: str, result: r.Result) -> list[Entry]:
    owner = experiment or "run"
    request = f"kernel|builtin:scan|{owner}|{kind}"
    candidate = sha(experiment) if experiment else None
    started = ev.JobStarted(request=request, kind=kind, experiment=experiment, candidate=candidate)
    return [
        ("job.started", "daemon", started),
        ("job.finished", "evaluator", ev.JobFinished(request=request, result=replace(result, job=request), experiment=experiment)),
    ]


def _opened(key: str, title: str, low: float, high: float) -> list[Entry]:
    beliefs = [ev.Belief(case=c, low=low, high=high, basis="traffic halves") for c in CASES]
    idea = ev.IdeaProposed(idea=f"I{key[1:]}", title=title, category="engineering", rationale="less traffic", beliefs=beliefs)
    opened = ev.ExperimentOpened(
        experiment=key,
        idea=f"I{key[1:]}",
        title=title,
        base=None,
        champion=None if key == "E1" else sha("E1"),
        prediction=beliefs,
        prediction_sha256=prediction_sha256(beliefs),
    )
    return [("idea.proposed", f"idea:I{key[1:]}", idea), ("experiment.opened", "orchestrator", opened)]


def _judged(key: str, *, speedup: float, rho: float, decision: r.Decision) -> list[Entry]:
    parts = (r.RobustnessPart(name="many seeds", passed=True, tests=8), r.RobustnessPart(name="two sizes", passed=True, tests=2))
    robust = r.Robustness(passed=True, parts=parts, not_checked=("poisoned allocator",))
    submitted = ev.CandidateSubmitted(experiment=key, sha256=sha(key), bytes=1830, note="C++ through load_inline")
    return [
        ("candidate.submitted", f"worker:{key}", submitted),
        *_job(key, "check", _ok("check", source_sha256=sha(key))),
        *_job(key, "evaluate", _ok("evaluate", source_sha256=sha(key), evaluation=_evaluation(correct=True, speedup=speedup))),
        *_job(key, "robustness", _ok("robustness", source_sha256=sha(key), robustness=robust)),
        *_job(key, "ab", _ok("ab", source_sha256=sha(key), verdict=verdict(key, rho=rho, decision=decision))),
    ]


def verdict(key: str, *, rho: float, decision: r.Decision) -> r.Verdict:
    """A verdict around `rho`."""
    ci, wall = r.Interval(low=rho - 0.009, high=rho + 0.009), r.Interval(low=rho - 0.013, high=rho + 0.013)
    cases = tuple(
        r.CaseRatio(
            case=c,
            rho=rho,
            rho_ci=ci,
            rho_wall=rho + 0.002,
            rho_wall_ci=wall,
            slot_bias=1.0021,
            floor=0.012,
            pairs=20,
            champion_us=1830.0,
            candidate_us=1830.0 * rho,
        )
        for c in CASES
    )
    reasons = {
        r.Decision.FASTER: "both clocks exclude 1 by more than the floor",
        r.Decision.UNRESOLVED: "the interval lies within the floor",
    }
    return r.Verdict(
        decision=decision,
        reason=reasons[decision],
        rho=rho,
        rho_ci=ci,
        rho_wall=rho + 0.002,
        rho_wall_ci=wall,
        floor=0.012,
        cases=cases,
        champion_sha256=None,
        candidate_sha256=sha(key),
        outputs_verified=84,
    )


def _evaluation(*, correct: bool, speedup: float | None, naive: r.Claim | None = None) -> r.Evaluation:
    checks = tuple(
        r.CaseCheck(
            case=c, correct=correct, seeds=5, max_abs_error=3.1e-7 if correct else 0.41, detail="" if correct else "first at [65535]"
        )
        for c in CASES
    )
    timings = () if speedup is None else tuple(_timing(c, speedup) for c in CASES)
    ci = None if speedup is None else r.Interval(low=speedup - 0.05, high=speedup + 0.05)
    return r.Evaluation(
        correct=correct,
        fast1=speedup is not None,
        fast1_raw=speedup is not None,
        speedup=speedup,
        speedup_ci=ci,
        speedup_bound=speedup and speedup - 0.01,
        score=speedup or 0.0,
        checks=checks,
        timings=timings,
        flags=("reused output buffer",) if speedup == 2.41 else (),
        naive=naive,
    )


def _timing(case: str, speedup: float) -> r.CaseTiming:
    cand = 1830.0 / speedup
    audit = r.Audit(event_us=cand - 1, wall_us=cand + 21, overhead_us=21.4, slack_us=3.2, agrees=True)
    ci = r.Interval(low=speedup - 0.05, high=speedup + 0.05)
    return r.CaseTiming(
        case=case,
        ref_us=1830.0,
        cand_us=cand,
        speedup=speedup,
        speedup_ci=ci,
        speedup_mean=speedup,
        speedup_bound=speedup - 0.01,
        trials=120,
        blocks=12,
        voided=1,
        audit=audit,
    )


def _report(key: str, conclusion: str, *, final: bool = False) -> Entry:
    report = ev.ExperimentReported(
        experiment=key, conclusion=conclusion, report=f"{conclusion}.\n\nMeasured as asked.", final=sha(key) if final else None
    )
    return ("experiment.reported", f"worker:{key}", report)


def _reconciled(
    key: str,
    *,
    measured: float | None,
    surprise: float | None,
    covered: bool | None,
    hypothesis: str,
    performance: str,
    correctness: str = "correct",
    changes: list[ev.ClaimChange] | None = None,
) -> Entry:
    cases = [
        ev.CaseReconciliation(
            case=c,
            predicted_low=1.02,
            predicted_high=1.10,
            measured=measured,
            measured_low=measured and measured - 0.02,
            measured_high=measured and measured + 0.02,
            covered=covered,
            surprise=surprise,
        )
        for c in CASES
    ]
    data = ev.ExperimentReconciled(
        experiment=key,
        cases=cases,
        surprise=surprise,
        source="ab" if measured else "none",
        explanation="The loop was bound by latency, not by traffic.",
        changes=changes or [],
        correctness=correctness,
        performance=performance,
        hypothesis=hypothesis,
    )
    return ("experiment.reconciled", "orchestrator", data)


def _gate(key: str, *, promoted: bool, reason: str) -> Entry:
    names = ("evaluation ok", "A/B above the floor", "robustness", "reconciled")
    checks = [ev.GateCheck(name=n, passed=True, detail="as recorded") for n in names]
    data = ev.GateDecided(
        experiment=key,
        sha256=sha(key),
        gate="reduced gate (first light)",
        promoted=promoted,
        checks=checks,
        not_checked=["memory checker"],
        reason=reason,
    )
    return ("gate.decided", "daemon", data)
