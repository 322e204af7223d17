"""One protected evaluation in full: correctness, timing, audit, flags, and the naive claim beside a refusal.

Invariant: every measured figure stands beside its interval and both clocks; a refusal shows what a
naive evaluator would have believed where that was measured.
Not for: A/B verdicts (`console.views.verdict`).
"""

from __future__ import annotations

from console.views import marks, numbers
from console.views.doc import BLANK, Column, Line, Span, Tone, header, heading, line, pair, row_of, verbatim, wrapped
from evaluator.records import CaseCheck, CaseTiming, Claim, Evaluation, Result, Robustness

CHECK_COLUMNS = (
    Column(title="case", width=14),
    Column(title="correct", width=9),
    Column(title="draws", width=6, right=True),
    Column(title="max error", width=10, right=True, rank=1),
    Column(title="first mismatch", width=16, grows=True),
)
TIMING_COLUMNS = (
    Column(title="case", width=12, grows=True),
    Column(title="reference", width=9, right=True),
    Column(title="candidate", width=9, right=True),
    Column(title="speed-up", width=8, right=True),
    Column(title="95 %", width=11, right=True),
    Column(title="bound", width=7, right=True, rank=2),
    Column(title="trials", width=6, right=True, rank=3),
    Column(title="void", width=4, right=True, rank=3),
)
AUDIT_COLUMNS = (
    Column(title="case", width=12, grows=True),
    Column(title="event", width=9, right=True),
    Column(title="wall", width=9, right=True),
    Column(title="overhead", width=9, right=True),
    Column(title="slack", width=9, right=True),
    Column(title="clocks", width=10),
)


def report(result: Result, *, width: int) -> list[Line]:
    """Build the whole report of an `evaluate` or `check` job."""
    rows = [*outcome(result, width=width)]
    if result.evaluation is not None:
        rows += _evaluation(result.evaluation, width=width)
    if result.robustness is not None:
        rows += robustness(result.robustness, width=width)
    if result.log:
        rows += [BLANK, heading("log"), *verbatim(result.log, limit=200)]
    return rows


def outcome(result: Result, *, width: int) -> list[Line]:
    """Build status, message, hint and what a naive evaluator would have said."""
    rows = [line(("status ", "muted"), marks.status(result.status.value).span, (f"  profile {result.profile}", "muted"))]
    if result.message:
        rows += wrapped(result.message, width=width, indent="  ")
    if result.hint:
        rows += wrapped(f"mend: {result.hint}", width=width, indent="  ", tone="accent")
    naive = result.evaluation.naive if result.evaluation else None
    return [*rows, *wrapped(naive_words(naive), width=width, indent="  ", tone="warn")] if naive else rows


def naive_words(claim: Claim | None) -> str:
    """Say what a naive evaluator would have believed of a refused candidate."""
    if claim is None:
        return ""
    if claim.speedup is None:
        return f"a naive evaluator did not credit it either{_detail(claim.detail)}"
    truth = "correct" if claim.correct else "incorrect"
    return f"a naive evaluator would have called it {truth} and credited {numbers.times(claim.speedup)}{_detail(claim.detail)}"


def robustness(part: Robustness, *, width: int) -> list[Line]:
    """Build the parts of a robustness job and what it did not check."""
    rows: list[Line] = []
    for item in part.parts:
        rows.append(line("  ", marks.passed(item.passed).span, f"  {item.name}", (f"  {item.tests} tests", "muted")))
        rows += wrapped(item.detail, width=width, indent="      ", tone="muted") if item.detail else []
    if part.not_checked:
        rows += wrapped("not checked: " + ", ".join(part.not_checked), width=width, indent="  ", tone="warn")
    return rows


def _evaluation(report: Evaluation, *, width: int) -> list[Line]:
    rows: list[Line] = []
    if report.speedup is not None:
        ci = report.speedup_ci
        span = numbers.times_range(ci.low, ci.high) if ci else numbers.DASH
        tone: Tone = "good" if report.fast1 else "plain"
        rows.append(pair("speed-up", (f"{numbers.times(report.speedup)}  95 % {span}", tone), width=10))
        rows.append(pair("bound", f"{numbers.times(report.speedup_bound)} if the whole slack was won", width=10))
        rows.append(pair("score", f"{report.score:.3g}  fast_1 {_yes(report.fast1)}  raw {_yes(report.fast1_raw)}", width=10))
    if report.flags:
        rows.append(pair("flags", (", ".join(report.flags), "warn"), width=10))
    if report.checks:
        rows += [BLANK, heading("correctness"), header(CHECK_COLUMNS, width=width), *(_check(c, width) for c in report.checks)]
    if report.timings:
        rows += [BLANK, heading("timing"), header(TIMING_COLUMNS, width=width), *(_timing(t, width) for t in report.timings)]
        rows += [BLANK, heading("audit of the candidate's clock"), header(AUDIT_COLUMNS, width=width)]
        rows += [_audit(t, width) for t in report.timings]
    return rows


def _check(check: CaseCheck, width: int) -> Line:
    error = numbers.DASH if check.max_abs_error is None else f"{check.max_abs_error:.2e}"
    mark = marks.Mark("✓", "yes", "good") if check.correct else marks.Mark("✗", "no", "bad")
    cells = [Span(check.case), mark.span, Span(str(check.seeds)), Span(error), Span(check.detail or numbers.DASH)]
    return row_of(cells, CHECK_COLUMNS, width=width)


def _timing(timing: CaseTiming, width: int) -> Line:
    cells = [
        Span(timing.case),
        Span(numbers.duration_us(timing.ref_us)),
        Span(numbers.duration_us(timing.cand_us)),
        Span(numbers.times(timing.speedup), "good" if timing.speedup_ci.low > 1 else "plain"),
        Span(numbers.times_range(timing.speedup_ci.low, timing.speedup_ci.high)),
        Span(numbers.times(timing.speedup_bound)),
        Span(str(timing.trials)),
        Span(str(timing.voided)),
    ]
    return row_of(cells, TIMING_COLUMNS, width=width)


def _audit(timing: CaseTiming, width: int) -> Line:
    audit = timing.audit
    agree = marks.Mark("✓", "agree", "good") if audit.agrees else marks.Mark("!", "disagree", "warn")
    times = [Span(numbers.duration_us(v)) for v in (audit.event_us, audit.wall_us, audit.overhead_us, audit.slack_us)]
    return row_of([Span(timing.case), *times, agree.span], AUDIT_COLUMNS, width=width)


def _detail(text: str) -> str:
    return f" ({text})" if text else ""


def _yes(value: bool) -> str:
    return "yes" if value else "no"
