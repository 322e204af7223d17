"""What a judge command prints and how it exits, from the result alone.

Invariant: 0 only for the answer that the command asks for: correct (`evaluate`, `check`), faster (`ab`), robust, qualified; 3 when
the judge could not measure; 1 otherwise.
Not for: running the judge (`console.judge`).
"""

from __future__ import annotations

from console.views import evaluation, numbers, verdict
from console.views.doc import BLANK, Column, Line, Span, header, line, pair, row_of, verbatim
from console.views.marks import Mark, passed
from evaluator.records import Baseline, Decision, Floor, JobKind, Profile, ProfileCase, Qualification, Result, Status

BASELINE_COLUMNS = (
    Column(title="case", width=14, grows=True),
    Column(title="eager", width=10, right=True),
    Column(title="compiled", width=10, right=True),
    Column(title="trials", width=6, right=True),
)
FLOOR_COLUMNS = (
    Column(title="case", width=14, grows=True),
    Column(title="floor", width=8, right=True),
    Column(title="ρ by events", width=24, right=True),
    Column(title="slot bias", width=9, right=True, rank=1),
    Column(title="pairs", width=5, right=True, rank=2),
)
OPERATION_COLUMNS = (
    Column(title="operation", width=24, grows=True),
    Column(title="where", width=6),
    Column(title="calls", width=7, right=True, rank=1),
    Column(title="own time", width=10, right=True),
    Column(title="share", width=7, right=True),
)
OPERATIONS_SHOWN = 12
CONTROL_COLUMNS = (
    Column(title="", width=8),
    Column(title="control", width=18, grows=True),
    Column(title="gate", width=4),
    Column(title="must get", width=22),
    Column(title="got", width=18),
    Column(title="naive", width=7, right=True, rank=1),
)


def exit_code(result: Result) -> int:
    """Return the exit code of a judge command."""
    if result.status is Status.EVALUATOR_ERROR:
        return 3
    return 0 if result.status is Status.OK and _is_yes(result) else 1


def report(result: Result, *, width: int) -> list[Line]:
    """Build everything a judge command prints."""
    rows = _body(result, width=width)
    print_id = str(result.fingerprint.get("sha256", ""))[:10] or "unknown"
    tail = line((f"evaluator {print_id}  problem {result.problem_sha256[:10]}  {numbers.seconds(result.wall_s)}", "muted"))
    return [line((f"{result.kind.value} {result.problem}", "heading")), *rows, tail]


def _is_yes(result: Result) -> bool:
    if result.kind is JobKind.AB:
        return result.verdict is not None and result.verdict.decision is Decision.FASTER
    if result.kind is JobKind.ROBUSTNESS:
        return result.robustness is not None and result.robustness.passed
    if result.kind is JobKind.QUALIFY:
        return result.qualification is not None and result.qualification.qualified
    return True


def _body(result: Result, *, width: int) -> list[Line]:
    if result.verdict is not None:
        return verdict.report(result.verdict, width=width)
    if result.baseline is not None:
        return _baseline(result.baseline, result.message, width=width)
    if result.floor is not None:
        return _floor(result.floor, width=width)
    if result.profiled is not None:
        return _profile(result.profiled, width=width)
    if result.qualification is not None:
        return _qualification(result.qualification, width=width)
    return evaluation.report(result, width=width)


def _baseline(report: Baseline, message: str, *, width: int) -> list[Line]:
    rows = [
        row_of(
            [Span(c.case), Span(numbers.duration_us(c.eager_us)), Span(numbers.duration_us(c.compiled_us)), Span(str(c.trials))],
            BASELINE_COLUMNS,
            width=width,
        )
        for c in report.cases
    ]
    total = pair("geometric mean", f"eager {numbers.duration_us(report.eager_us)}, compiled {numbers.duration_us(report.compiled_us)}")
    return [header(BASELINE_COLUMNS, width=width), *rows, total, *(verbatim(message) if message else [])]


def _floor(report: Floor, *, width: int) -> list[Line]:
    rows = [
        row_of(
            [
                Span(c.case),
                Span(numbers.share(c.floor)),
                Span(numbers.ratio_with(c.rho, c.rho_ci.low, c.rho_ci.high)),
                Span(numbers.ratio(c.slot_bias)),
                Span(str(c.pairs)),
            ],
            FLOOR_COLUMNS,
            width=width,
        )
        for c in report.cases
    ]
    return [header(FLOOR_COLUMNS, width=width), *rows, pair("geometric mean", numbers.share(report.floor))]


def _profile(report: Profile, *, width: int) -> list[Line]:
    rows: list[Line] = []
    for case in report.cases:
        rows += [*_profile_case(case, width=width), BLANK]
    words = f"told by the candidate's own process over {report.calls} calls: help for its author, nothing that counts"
    return [*rows, line((words, "muted"))]


def _profile_case(case: ProfileCase, *, width: int) -> list[Line]:
    on_host = sum(o.us for o in case.operations if o.where == "host")
    whole = max(case.plain_us, on_host)

    def row(name: str, where: str, calls: str, us: float) -> Line:
        cells = [Span(name), Span(where), Span(calls), Span(numbers.duration_us(us)), Span(numbers.share(us / whole))]
        return row_of(cells, OPERATION_COLUMNS, width=width)

    rows = [line((f"case {case.case}", "strong"), f"  {numbers.duration_us(case.plain_us)} a call without the profiler")]
    if case.gap_us is not None:
        rows.append(line(f"the device was idle {case.gaps} times between kernels, for {numbers.duration_us(case.gap_us)} (median)"))
    rows.append(header(OPERATION_COLUMNS, width=width))
    rows += [row(o.name, o.where, f"{o.calls:g}", o.us) for o in case.operations[:OPERATIONS_SHOWN]]
    if case.plain_us > on_host:
        rows.append(row("outside torch's operations", "host", "", case.plain_us - on_host))
    rest = len(case.operations) - OPERATIONS_SHOWN
    return [*rows, line((f"and {rest} shorter ones (--json has them)", "muted"))] if rest > 0 else rows


def _qualification(report: Qualification, *, width: int) -> list[Line]:
    rows = []
    for c in report.controls:
        cells = [
            passed(c.passed).span,
            Span(f"{c.control} ({c.profile})"),
            Span("on" if c.gate else "off"),
            Span(c.expected),
            Span(c.got),
            Span(numbers.times(c.naive_speedup)),
        ]
        rows.append(row_of(cells, CONTROL_COLUMNS, width=width))
    good = sum(c.passed for c in report.controls)
    mark = Mark("✓", "qualified", "good") if report.qualified else Mark("✗", "not qualified", "bad")
    words = f"  {'quick: ' if report.quick else ''}{good} of {len(report.controls)} controls"
    return [header(CONTROL_COLUMNS, width=width), *rows, BLANK, line(mark.span, words)]
