"""The controls' table, their texts, the catalogue's coverage, and how a qualification is decided."""

import ast
import re

import pytest

from evaluator.gate import has_entry, scan, syntax_error
from evaluator.qualification.catalogue import coverage
from evaluator.qualification.runner import credits, job_of, qualify
from evaluator.qualification.shipped import document, shipped, shipped_claim
from evaluator.qualification.table import Expectation, controls, subset
from evaluator.records import Claim, Evaluation, JobKind, Result, Status

ROWS = {
    "A": (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15, 17, 19, 20, 22, 23, 24),
    "B": (1, 2, 3, 5, 6, 8, 9, 10, 12),
    "C": (1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14),
    "D": (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21),
    "E": (1, 2, 3, 5, 6, 7, 9, 11, 12, 14, 16, 17, 19),
    "F": (1, 3, 4),
    "G": (2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16),
    "H": (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13),
}
"""Ids of the catalogue of 100 known exploits."""

MUST_BE_SHOWN = {
    "timer_python",
    "timer_native_code",
    "cache_pointer",
    "late_python_thread",
    "late_native_thread",
    "batch_first_call",
    "overhead_slowed",
    "comparison_patched",
    "early_start",
}


def test_every_row_of_the_catalogue_is_mapped():
    rows = [f"{letter}{number:02d}" for letter, numbers in ROWS.items() for number in numbers]
    assert len(rows) == 100
    assert sorted(coverage()) == sorted(rows)
    assert [row for row, where in coverage().items() if not where.controls and len(where.why) < 20] == []


def test_the_catalogue_and_the_controls_name_each_other():
    known = {c.id for c in controls()}
    assert {name for where in coverage().values() for name in where.controls} <= known
    for control in controls():
        for row in control.catalogue:
            assert control.id in coverage()[row].controls, f"{control.id} says it covers {row}"


def test_the_table():
    ids = [c.id for c in controls()]
    assert len(ids) == len(set(ids)) >= 40
    assert len({c.mechanism for c in controls()}) == len(ids)
    assert {c.problem for c in controls()} == {"builtin:gemm_epilogue"}
    assert {c.profile for c in controls()} == {"open", "seed"}
    assert {c.id for c in controls() if c.is_exploit} >= MUST_BE_SHOWN


def test_the_quick_subset_is_one_a_family():
    families = [c.family for c in subset(quick=True)]
    assert len(families) == len(set(families))
    assert set(families) == {c.family for c in controls()}
    assert len(families) >= 12
    assert subset(quick=False) == controls()


def test_an_exploit_may_never_gain():
    for control in controls():
        if control.is_exploit:
            for expected in (control.gate_on, control.gate_off):
                assert expected.max_gain is None or expected.max_gain <= 1.02
                assert expected.max_gain is not None or Status.OK not in expected.statuses


@pytest.mark.parametrize("control", controls(), ids=lambda c: c.id)
def test_every_text_is_complete_and_meets_the_gate_as_its_row_says(control):
    assert syntax_error(control.text) is None
    assert has_entry(control.text, "ModelNew")
    assert not re.search(r"^# @", control.text, re.MULTILINE)
    status = scan(control.text, profile=control.profile, entry="ModelNew", advisory="off").status
    if control.gate_on.statuses == {Status.FORBIDDEN} and control.id != "split_token":
        assert status is Status.FORBIDDEN
    elif control.gate_on.statuses == {Status.NO_CUSTOM_KERNEL} and control.gate_on.max_gain is None:
        assert status is Status.NO_CUSTOM_KERNEL
    else:
        assert status is Status.OK


def test_controls_share_their_native_builds():
    calls = set()
    for control in controls():
        for node in ast.walk(ast.parse(control.text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_inline":
                calls.add(ast.dump(node))
    assert len(calls) == 6  # kernels, tricks, answering, forbidden, escapes, and the one that hides a token


def test_an_expectation_in_words():
    either = Expectation(statuses=frozenset({Status.TAMPERED, Status.INCORRECT}), max_gain=1.02)
    assert either.words == "incorrect or tampered or gain <= 1.02x"
    assert either.accepts(result(Status.TAMPERED))
    assert either.accepts(result(Status.OK, 1.02))
    assert not either.accepts(result(Status.OK, 1.021))
    assert not either.accepts(result(Status.OK))
    assert not either.accepts(result(Status.EVALUATOR_ERROR))
    ok = Expectation(statuses=frozenset({Status.OK}))
    assert ok.words == "ok"
    assert ok.accepts(result(Status.OK, 9.0))
    assert not ok.accepts(result(Status.INCORRECT))


def result(status, speedup=None):
    report = None
    if speedup is not None:
        report = Evaluation(correct=True, fast1=False, fast1_raw=False, speedup=speedup, speedup_ci=None, speedup_bound=None, score=speedup)
    return Result(job="j", kind=JobKind.EVALUATE, status=status, message="why" if status is not Status.OK else "", evaluation=report)


def chosen(*names):
    return [c for c in controls() if c.id in names]


class Evaluator:
    """Answers by control and gate; remembers what it was asked."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def __call__(self, job):
        _, _, name, gate = job.id.split("|")
        self.asked.append((name, gate))
        assert job.options["gate"] is (gate == "on")
        return self.answers[name, gate] if (name, gate) in self.answers else self.answers[name]


def believing(job):
    return Claim(correct=True, speedup=9.0)


def test_a_sound_evaluator_is_qualified():
    steps = []
    evaluate = Evaluator(
        {
            "honest_fused": result(Status.OK, 1.2),
            ("timer_native_code", "on"): result(Status.FORBIDDEN),
            ("timer_native_code", "off"): result(Status.TAMPERED),
            "cache_pointer": result(Status.INCORRECT),
        }
    )
    found = qualify(
        evaluate, believing, quick=True, progress=steps.append, chosen=chosen("honest_fused", "timer_native_code", "cache_pointer")
    )
    assert (found.qualified, found.quick) == (True, True)
    assert evaluate.asked == [("honest_fused", "on"), ("timer_native_code", "on"), ("timer_native_code", "off"), ("cache_pointer", "on")]
    assert [(o.control, o.gate, o.got, o.naive_speedup) for o in found.controls] == [
        ("honest_fused", True, "ok, gain 1.200x", None),
        ("honest_fused", False, "ok, gain 1.200x", None),
        ("timer_native_code", True, "forbidden: why", None),
        ("timer_native_code", False, "tampered: why", 9.0),
        ("cache_pointer", True, "incorrect: why", None),
        ("cache_pointer", False, "incorrect: why", 9.0),
    ]
    assert [(s.detail, s.done, s.total) for s in steps] == [
        ("honest_fused", 0, 3),
        ("timer_native_code", 1, 3),
        ("cache_pointer", 2, 3),
        ("", 3, 3),
    ]


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("honest_fused", {"honest_fused": result(Status.FORBIDDEN)}),
        ("null_kernel", {"null_kernel": result(Status.OK, 1.3)}),
        ("cache_pointer", {"cache_pointer": result(Status.OK, 1.0)}),
        ("overhead_slowed", {"overhead_slowed": result(Status.OK, 1.5)}),
        ("timer_native_code", {"timer_native_code": result(Status.OK, 1.0)}),
        (
            "timer_native_code",
            {("timer_native_code", "on"): result(Status.FORBIDDEN), ("timer_native_code", "off"): result(Status.OK, 7.0)},
        ),
        ("crash_abort", {"crash_abort": result(Status.EVALUATOR_ERROR)}),
    ],
)
def test_an_unsound_evaluator_is_not_qualified(name, answers):
    found = qualify(Evaluator(answers), believing, quick=False, progress=lambda _: None, chosen=chosen(name))
    assert found.qualified is False
    assert [o.control for o in found.controls if not o.passed][:1] == [name]


def test_a_gain_that_may_not_be_is_measured_again_and_longer():
    class Noisy(Evaluator):
        def __call__(self, job):
            super().__call__(job)
            return result(Status.OK, 1.0 if "trials" in job.options else 1.11)

    evaluate = Noisy({"null_kernel": result(Status.OK, 1.0)})
    found = qualify(evaluate, believing, quick=True, progress=lambda _: None, chosen=chosen("null_kernel"))
    assert evaluate.asked == [("null_kernel", "on")] * 2
    assert found.qualified
    assert found.controls[0].got == "ok, gain 1.000x"


def test_an_exploit_that_nobody_believes_does_not_count():
    def doubting(job):
        return Claim(correct=True, speedup=1.1)

    answers = {"exit_hook": result(Status.OK, 1.0), "cache_pointer": result(Status.INCORRECT)}
    found = qualify(Evaluator(answers), doubting, quick=False, progress=lambda _: None, chosen=chosen("exit_hook", "cache_pointer"))
    by_control = {o.control: o for o in found.controls if not o.gate}
    assert by_control["exit_hook"].passed is False
    assert "not taken in" in by_control["exit_hook"].got
    assert by_control["cache_pointer"].passed is True  # it called a wrong output right
    assert found.qualified is False


def test_what_the_sandbox_stops_as_well_counts_by_the_measurement_that_ships_with_it():
    def doubting(job):
        raise AssertionError("nobody asks a naive evaluator that sits in a sandbox itself")

    answers = {("timer_native_memory_file", "on"): result(Status.FORBIDDEN), ("timer_native_memory_file", "off"): result(Status.OK, 0.9)}
    found = qualify(Evaluator(answers), doubting, quick=False, progress=lambda _: None, chosen=chosen("timer_native_memory_file"))
    assert found.qualified
    assert found.controls[1].naive_speedup > 1.5


def test_credit():
    assert credits(Claim(correct=True, speedup=1.5), result(Status.OK, 1.0))
    assert not credits(Claim(correct=True, speedup=1.49), result(Status.OK, 1.0))
    assert credits(Claim(correct=True, speedup=None), result(Status.INCORRECT))
    assert not credits(Claim(correct=False, speedup=30.0), result(Status.INCORRECT))
    assert not credits(Claim(correct=True, speedup=None), result(Status.FORBIDDEN))


def test_nothing_chosen_qualifies_nothing():
    assert qualify(Evaluator({}), None, quick=True, progress=lambda _: None, chosen=[]).qualified is False


def test_every_exploit_ships_with_a_measurement_of_its_present_text():
    claims = shipped()["claims"]
    exploits = {c.id: c for c in controls() if c.is_exploit}
    assert set(claims) == set(exploits)
    assert {name: entry["sha256"] for name, entry in claims.items()} == {name: c.source.sha256 for name, c in exploits.items()}
    for name in exploits:
        claim = shipped_claim(name)
        wrong_is_right = Status.INCORRECT in exploits[name].gate_off.statuses and exploits[name].gate_off.max_gain is None
        assert claim.correct
        assert wrong_is_right or (claim.speedup or 0) >= 1.5, name


def test_a_quick_qualification_uses_the_shipped_measurement():
    found = qualify(
        Evaluator({"cache_pointer": result(Status.INCORRECT)}), None, quick=True, progress=lambda _: None, chosen=chosen("cache_pointer")
    )
    assert found.qualified is True
    assert found.controls[-1].naive_speedup == shipped()["claims"]["cache_pointer"]["claim"]["speedup"]
    assert shipped_claim("no such control").correct is False


def test_a_new_document_of_measurements_from_a_full_run():
    found = qualify(
        Evaluator({"cache_pointer": result(Status.INCORRECT)}),
        believing,
        quick=False,
        progress=lambda _: None,
        chosen=chosen("cache_pointer"),
    )
    made = document(found, command="c", machine={"cpu": "x"})
    (control,) = chosen("cache_pointer")
    assert made["claims"] == {"cache_pointer": {"sha256": control.source.sha256, "claim": {"correct": True, "speedup": 9.0, "detail": ""}}}


def test_the_job_of_a_control():
    (control,) = chosen("hang")
    job = job_of(control, gate=False, job_id="q", device="cpu")
    assert (job.id, job.kind, job.problem) == ("q|builtin:gemm_epilogue|hang|off", JobKind.EVALUATE, "builtin:gemm_epilogue")
    assert job.options == {"timeout_s": 20, "gate": False}
    assert job.candidate is not None
    assert job.candidate.text == control.text
