import re
from pathlib import Path

import msgspec

from console.views import eventlog, experiment, experiments, guide, headline, marks, runs, story, summary, trend, world_model
from console.views.doc import plain, text_of
from console.views.records import as_struct
from evaluator.records import Result
from state.events import JobFinished, Record
from state.model import RunState
from state.reducer import apply
from state.verification import verify
from tests.console import scenario


def result_of(records: list[Record], request: str) -> Result:
    for record in records:
        event = as_struct(record, JobFinished) if record.kind == "job.finished" else None
        if event is not None and event.request == request:
            return event.result
    raise AssertionError(request)


def test_headline_says_speed_counts_gate_and_state(state: RunState) -> None:
    assert [text_of(row) for row in headline.headline(state)] == [
        "builtin:scan · Inclusive scan · cpu · model scripted",
        "baseline 1.83 ms  compiled 1.71 ms  champion 759 µs  speed-up 2.41×",
        "promotions 2  experiments 7  banked 1  tokens 1.20k in 340 out  cost unknown",
        "gate reduced gate (first light)  judge ✓ qualified (quick: 12 of 12 controls)",
        "◑ draining  pause requested  in flight E7 evaluation",
    ]


def test_headline_shows_how_far_a_running_job_is(state: RunState) -> None:
    values = {"job": {"job": "kernel|builtin:scan|E7|1", "step": "timing", "detail": "n1024", "done": 34, "total": 60, "kind": "evaluate"}}
    assert text_of(headline.now(state, headline.gauges_of(values))).endswith("in flight E7 evaluation: timing 34/60")
    assert headline.gauges_of({"queue": []}) == {}
    held = {"job": {"job": "kernel|builtin:scan|daemon|1", "step": "waiting", "detail": "device cpu is held by another process"}}
    assert text_of(headline.now(RunState(status="running"), headline.gauges_of(held))) == (
        "▶ running  in flight nothing  waiting: device cpu is held by another process"
    )


def test_requested_draining_and_paused_are_different_words() -> None:
    def words(status: str, requested: str | None) -> str:
        return text_of(headline.now(RunState(status=status, requested=requested), {}))

    assert words("running", "pause") == "▶ running  pause requested  in flight nothing"
    assert words("draining", None) == "◑ draining  in flight nothing"
    assert words("paused", None) == "‖ paused  in flight nothing"


def test_table_is_newest_first_and_compares_in_one_unit(state: RunState) -> None:
    rows = experiments.rows(state)
    assert [row.id for row in rows] == ["E7", "E6", "E5", "E4", "E3", "E2", "E1"]
    assert [row.status.word for row in rows] == [
        "no result yet",
        "promoted",
        "banked",
        "tampered",
        "compile error",
        "incorrect",
        "promoted",
    ]
    by_id = {row.id: row for row in rows}
    assert by_id["E6"].rung == 3
    assert round(by_id["E6"].measured or 0, 3) == 1.49
    assert [round(v, 3) for v in by_id["E6"].predicted or ()] == [1.02, 1.1]
    assert by_id["E4"].measured is None
    assert by_id["E4"].speedup is None


def test_table_fits_eighty_columns_and_keeps_prediction_beside_measurement(state: RunState) -> None:
    head = text_of(experiments.table_header(width=78))
    assert all(word in head for word in ("id", "title", "stage", "rung", "status", "predicted", "measured"))
    lines = [text_of(row.line(width=78)) for row in experiments.rows(state)]
    assert {len(row) for row in lines} == {78}
    assert "1.02–1.10×    1.49×" in lines[1]


def test_experiment_page_puts_prediction_beside_outcome(state: RunState, records: list[Record]) -> None:
    exhibits = experiment.Exhibits(
        evaluation=result_of(records, "kernel|builtin:scan|E6|evaluate"),
        verdict=result_of(records, "kernel|builtin:scan|E6|ab"),
        source="x = 1\n",
    )
    page = plain(experiment.document(state, state.experiments["E6"], exhibits, width=100))
    assert "E6  Vectorised prefix in registers" in page
    assert re.search(r"predicted .*├─+┤.* 1\.02–1\.10× at 80%", page)
    assert re.search(r"measured .*├─*●─*┤.* 1\.49× ✗ outside, surprise 8\.7", page)
    assert "surprise       8.70 of the half-width (≥ 2: a claim had to move)" in page
    assert "decision ▲ faster" in page
    assert re.search(r"by events .*├.*●.*┤.*░│░.* 0\.6710 \[0\.6620, 0\.6800\]", page)
    assert "slot bias c 1.0021  floor 1.20 %" in page
    assert "✓ passed  A/B above the floor  as recorded" in page
    assert "not checked: memory checker" in page
    assert "flags      reused output buffer" in page
    assert "c2: 0.70 → 0.35  one core gains as well" in page
    assert page.index("prediction beside outcome") < page.index("A/B") < page.index("gate:") < page.index("source")


def test_refusal_stands_beside_what_a_naive_evaluator_believed(state: RunState, records: list[Record]) -> None:
    exhibits = experiment.Exhibits(evaluation=result_of(records, "kernel|builtin:scan|E4|evaluate"))
    page = plain(experiment.document(state, state.experiments["E4"], exhibits, width=100))
    assert "status ⊘ tampered" in page
    assert "a naive evaluator would have called it correct and credited 41.3× (one fixed input)" in page


def test_a_page_without_records_leaves_sections_out(state: RunState) -> None:
    page = plain(experiment.document(state, state.experiments["E7"], experiment.Exhibits(), width=80))
    assert "not reconciled" in page
    assert "not asked" in page
    assert "A/B" not in page


def test_pages_fit_their_width(state: RunState, records: list[Record]) -> None:
    exhibits = experiment.Exhibits(
        evaluation=result_of(records, "kernel|builtin:scan|E6|evaluate"), verdict=result_of(records, "kernel|builtin:scan|E6|ab")
    )
    for width in (79, 120):
        rows = experiment.document(state, state.experiments["E6"], exhibits, width=width)
        assert max(len(text_of(row)) for row in rows) <= width


def test_story_tells_every_kind_of_outcome(records: list[Record]) -> None:
    told = [text_of(row) for r in records if (row := story.tell(r, start=records[0].ts)) is not None]
    text = "\n".join(told)
    assert told[0] == (
        "  +00:00  run 20270114-090000-scan-3f9a on builtin:scan: Inclusive scan, 2 cases, cpu, model scripted, reduced gate (first light)"
    )
    for part in (
        "qualification ✓ qualified quick: 12 of 12 controls",
        "baseline eager 1.83 ms, compiled 1.71 ms",
        "floor noise 1.20 % (A/A on this device)",
        "I1 idea (engineering) Single-pass scan in C++",
        "E1 experiment from I1: Single-pass scan in C++; predicted n1024 1.30–1.80×, n65536 1.30–1.80×",
        "E1 check ✓ correct",
        "E1 evaluation ✓ ok 1.62× [1.57, 1.67] over the reference",
        "E1 robustness ✓ passed many seeds, two sizes",
        "E1 A/B ▲ faster ρ 0.6170 [0.6080, 0.6260], by wall 0.6190 [0.6040, 0.6300], floor 1.20 %",
        "E1 reduced gate (first light) ✓ passes: every check passed; not checked: memory checker",
        "E1 ★ promotion 1: champion ",
        "E2 check ✗ incorrect: case n65536: 1 of 65536 elements differ, first at [65535]",
        "E3 check ✗ compile error: error: expected ';' before '}' token",
        "E4 evaluation ⊘ tampered: the answer came before the post: outputs of earlier inputs; "
        "a naive evaluator would have called it correct and credited 41.3× (one fixed input)",
        "E5 ◆ banked: ρ 0.9940 [0.9850, 1.0030], floor 1.20 %",
        "E6 reconciled hypothesis refuted: outside the prediction on n1024, n65536, surprise 8.70; c2 0.70 → 0.35",
        "world model 8 lines: c2 0.70 → 0.35; E6 contradicts c2",
        "nudge N1 queued: try SIMD [red]now[/red]",
        "warning slot bias above 1 % in E6",
        "operator asked to pause",
    ):
        assert part in text, part
    assert "\x1b" not in text


def test_event_log_leaves_no_record_out(records: list[Record]) -> None:
    lines = [text_of(eventlog.log_line(r, start=records[0].ts)) for r in records]
    assert [int(row.split()[0]) for row in lines] == [r.seq for r in records]
    assert "kernel" not in lines[3].split("  ")[0]


def test_unknown_kinds_and_shapes_are_shown_by_their_fields(records: list[Record]) -> None:
    strange = msgspec.structs.replace(records[0], kind="later.kind", data={"text": "from \x1b[1mtomorrow"})
    broken = msgspec.structs.replace(records[0], kind="promotion", data={"number": "one"})
    assert text_of(eventlog.log_line(strange, start="")).endswith("later.kind            from tomorrow")
    assert "number" in text_of(eventlog.log_line(broken, start=""))
    page = plain(eventlog.page(strange))
    assert "tomorrow" in page
    assert "\x1b" not in page


def test_summary_counts_each_candidate_once(state: RunState, records: list[Record]) -> None:
    replayed, tally = RunState(), summary.Tally()
    for record in records:
        apply(replayed, record)
        tally.apply(record, replayed)
    found = summary.summarize(replayed, tally)
    assert [p.experiment for p in found.promotions] == ["E1", "E6"]
    assert [k.experiment for k in found.banked] == ["E5"]
    assert [m.experiment for m in found.incorrect] == ["E2"]
    assert [m.experiment for m in found.compile_errors] == ["E3"]
    assert [(m.experiment, m.status, m.claimed_speedup) for m in found.refused] == [("E4", "tampered", 41.3)]
    assert found.unresolved == ()
    assert (found.predictions_made, found.predictions_reconciled) == (7, 3)
    assert (found.baseline_us, found.compiled_us, found.champion_us, found.speedup) == (1830.0, 1710.0, 759.3, 2.41)
    data = found.as_json()
    assert data["predictions"] == {"made": 7, "reconciled": 3}
    text = plain(summary.table(found))
    assert "refused         1  E4 Remember the answer: ⊘ tampered, claimed 41.3×" in text
    assert "promotions      2  E1 Single-pass scan in C++, 1.62×, ρ 0.6170" in text


def test_trend_is_a_step_line_of_finite_points(state: RunState) -> None:
    points = trend.trend(state)
    assert points.speedups == (1.0, 1.0, 1.62, 1.62, 2.41, 2.41)
    assert points.minutes[0] == 0.0
    assert list(points.minutes) == sorted(points.minutes)
    many = [(float(i), 1.0 + i) for i in range(5_000)]
    assert len(trend.thinned(many)) <= trend.LIMIT
    assert trend.thinned(many)[-1] == many[-1]


def test_world_model_is_shown_as_text(state: RunState) -> None:
    text = plain(world_model.document(state, width=80))
    assert text.startswith("world model  8 of 250 lines  1 edits")
    assert "- Reading [bold]past the end[/bold] does not pay." in text


def test_runs_take_what_the_daemon_lists() -> None:
    rows = runs.rows([{"run": "r1", "problem": "builtin:scan", "status": "running", "speedup": 1.5, "promotions": 2}, {"no": "run"}])
    assert [(r.run, r.status, r.speedup, r.promotions) for r in rows] == [("r1", "running", 1.5, 2)]


def test_every_glyph_is_explained() -> None:
    text = plain(guide.document(width=80))
    assert all(marks.status(s).text in text for s in ("ok", "incorrect", "forbidden", "evaluator_error"))
    assert all(marks.decision(d).text in text for d in ("faster", "slower", "unresolved"))


def test_the_fixture_is_a_whole_journal(journal: Path, state: RunState) -> None:
    found = verify(journal)
    assert (found.ok, found.run, found.records) == (True, scenario.RUN, state.records), found.message
    assert [a.text for a in state.alerts] == ["slot bias above 1 % in E6"]
