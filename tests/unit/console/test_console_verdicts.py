import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console import doctor
from console.errors import EnvironmentFault, explain
from console.judge import JudgeFault, run_job
from console.views import verdicts
from console.views.doc import plain
from evaluator import records as r
from problems.errors import UnknownProblem
from tests.console import scenario

OK = r.Result(job="x", kind=r.JobKind.CHECK, status=r.Status.OK)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (OK, 0),
        (replace(OK, status=r.Status.INCORRECT), 1),
        (replace(OK, status=r.Status.COMPILE_ERROR), 1),
        (replace(OK, status=r.Status.TAMPERED), 1),
        (replace(OK, status=r.Status.EVALUATOR_ERROR), 3),
        (replace(OK, kind=r.JobKind.AB, verdict=scenario.verdict("E", rho=0.7, decision=r.Decision.FASTER)), 0),
        (replace(OK, kind=r.JobKind.AB, verdict=scenario.verdict("E", rho=0.99, decision=r.Decision.UNRESOLVED)), 1),
        (replace(OK, kind=r.JobKind.QUALIFY, qualification=r.Qualification(qualified=False, quick=True, controls=())), 1),
        (replace(OK, kind=r.JobKind.QUALIFY, qualification=r.Qualification(qualified=True, quick=True, controls=())), 0),
        (replace(OK, kind=r.JobKind.ROBUSTNESS, robustness=r.Robustness(passed=False, parts=())), 1),
    ],
)
def test_exit_codes_follow_the_verdict(result: r.Result, code: int) -> None:
    assert verdicts.exit_code(result) == code


def test_a_profile_shows_what_lies_outside_torch_and_who_says_so() -> None:
    operations = tuple(
        r.ProfiledOperation(name=name, where="host", calls=calls, us=us)
        for name, calls, us in (("aten::mm", 1.0, 60.0), ("aten::add", 2.5, 15.0))
    )
    case = r.ProfileCase(case="wide", plain_us=100.0, operations=operations, gaps=3, gap_us=2.5)
    result = replace(OK, kind=r.JobKind.PROFILE, profiled=r.Profile(calls=4, cases=(case,)))
    text = plain(verdicts.report(result, width=100))
    rows = [line.split() for line in text.splitlines()]
    assert ["aten::mm", "host", "1", "60.0", "µs", "60.00", "%"] in rows
    assert ["aten::add", "host", "2.5", "15.0", "µs", "15.00", "%"] in rows
    assert ["outside", "torch's", "operations", "host", "25.0", "µs", "25.00", "%"] in rows
    assert "idle 3 times between kernels, for 2.50 µs (median)" in text
    assert "told by the candidate's own process over 4 calls" in text


def test_qualification_shows_what_each_control_got_and_what_naive_credits() -> None:
    control = r.ControlOutcome(
        control="clock_native", profile="open", gate=False, expected="tampered", got="ok", passed=False, naive_speedup=31.0
    )
    result = replace(OK, kind=r.JobKind.QUALIFY, qualification=r.Qualification(qualified=False, quick=False, controls=(control,)))
    text = plain(verdicts.report(result, width=100))
    assert "✗ failed clock_native (open)" in text
    assert "31.0×" in text
    assert "✗ not qualified  0 of 1 controls" in text


def judged(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[r.Progress]:
    judge = tmp_path / "judge.py"
    judge.write_text("import json, os, sys\n" + script)

    monkeypatch.setenv("RATCHET_JUDGE", f"{sys.executable} {judge}")
    seen: list[r.Progress] = []
    run_job(r.Job(id="j", kind=r.JobKind.CHECK, problem="builtin:scan"), report=seen.append)
    return seen


@pytest.mark.parametrize(
    ("script", "code", "message", "hint"),
    [
        ("sys.stderr.write('evaluator: no bwrap\\n  mend: install it\\n'); sys.exit(3)", 3, "no bwrap", "install it"),
        ("sys.stderr.write('evaluator: no such case\\n'); sys.exit(2)", 2, "no such case", ""),
        (
            "sys.stderr.write('\\x1b[31mboom\\n'); sys.exit(1)",
            3,
            "the judge ended without a result (exit code 1): boom",
            "run it again; `ratchet doctor` checks this machine",
        ),
        ("os.kill(os.getpid(), 9)", 3, "the judge ended without a result (signal 9)", "run it again; `ratchet doctor` checks this machine"),
        ("pass", 3, "the judge ended without a result (exit code 0)", "run it again; `ratchet doctor` checks this machine"),
    ],
)
def test_a_judge_without_a_result_is_explained(
    script: str, code: int, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JudgeFault) as caught:
        judged(script, tmp_path, monkeypatch)
    assert (caught.value.code, caught.value.message, caught.value.hint) == (code, message, hint)


def test_progress_is_reported_and_noise_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "print('not json'); print('x' * 3_000_000); print(json.dumps({'progress': {'job': 'j', 'step': 'build'}}))\n"
        "print(json.dumps({'job': 'j', 'step': 'bare'}))\n"
        "print(json.dumps({'progress': {'job': 'j', 'step': 'timing', 'done': 1, 'total': 2}}))\n"
        "sys.stderr.write('e' * 3_000_000)\n"
        "open(sys.argv[3], 'w').write(json.dumps({'job': 'j', 'kind': 'check', 'status': 'ok'}))\n"
    )
    assert [(p.step, p.done) for p in judged(script, tmp_path, monkeypatch)] == [("build", None), ("timing", 1)]


def test_doctor_names_distributions_that_clash() -> None:
    found = doctor.names({"state": ["kernel-ratchet", "some-state-lib"], "agents": ["kernel_ratchet"]})
    assert (found.ok, found.detail) == (False, "state (some-state-lib)")
    assert doctor.names({"state": ["kernel-ratchet"]}).ok


def test_doctor_refuses_a_socket_path_that_is_too_long(tmp_path: Path) -> None:
    found = doctor.socket_place(tmp_path / ("d" * 120) / "ratchet.sock")
    assert (found.ok, found.mend) == (False, "give a shorter one with --socket")


def test_the_first_thing_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(EnvironmentFault, match=r"compiler: no c\+\+") as caught:
        doctor.require_judge()
    assert (caught.value.code, caught.value.hint) == (3, "apt-get install g++ (or set CXX)")


def test_errors_of_every_package_are_read_alike() -> None:
    found = explain(UnknownProblem("no problem 'x'", "did you mean y?"))
    assert found is not None
    assert (found.code, found.message, found.hint) == (2, "no problem 'x'", "did you mean y?")
    assert explain(ValueError("a bug")) is None
