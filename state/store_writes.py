"""Writing records and what they changed into the projection's tables.

Invariant: runs inside the caller's transaction; what is written depends on the records after `after`
and on the state only.
Not for: opening, reading or locking the database (`state.store`).
"""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from state.events import Record
from state.model import RunState
from state.rows import PromotionRow, claim_rows, event_row, experiment_row, experiment_text, run_row
from state.schema import upsert, values_of

_STARTED = """
INSERT INTO jobs (of_run, request, kind, experiment, purpose, status, started_seq, finished_seq, voided)
VALUES (?, ?, ?, ?, ?, 'in flight', ?, NULL, 0)
ON CONFLICT DO UPDATE SET status = 'in flight' WHERE finished_seq IS NULL
"""
_FINISHED = """
INSERT INTO jobs (of_run, request, kind, experiment, purpose, status, started_seq, finished_seq, voided)
VALUES (?, ?, ?, ?, '', ?, NULL, ?, 0)
ON CONFLICT DO UPDATE SET status = excluded.status, finished_seq = excluded.finished_seq WHERE finished_seq IS NULL
"""
_VOIDED = "UPDATE jobs SET status = 'void', voided = voided + 1 WHERE of_run = ? AND request = ? AND status = 'in flight'"


async def project(db: aiosqlite.Connection, records: Sequence[Record], *, state: RunState, after: int) -> None:
    """Write the rows of `records` and of everything in `state` that changed after record `after`."""
    if not records:
        return
    run = records[0].run
    rows = [(run, *values_of(event_row(record, state))) for record in records]
    await db.executemany(upsert("records"), rows)
    for record in records:
        await _job(db, record)
    await _experiments(db, run, state, after=after)
    await _promotions(db, run, state, after=after)
    if any(seq > after for seq in state.world_model_history):
        await _claims(db, run, state)
    row = run_row(state, run=run, seq=records[-1].seq, digest=records[-1].hash)
    await db.execute(upsert("runs"), values_of(row))


async def _job(db: aiosqlite.Connection, record: Record) -> None:
    data, run = record.data, record.run
    if record.kind == "run.resumed":
        await db.executemany(_VOIDED, [(run, request) for request in data.get("voided", []) if isinstance(request, str)])
        return
    request = _text(data.get("request"))
    if record.kind == "job.started":
        values = (_text(data.get("kind")), _text(data.get("experiment")) or None, _text(data.get("purpose")), record.seq)
        await db.execute(_STARTED, (run, request, *values))
    elif record.kind == "job.finished":
        result = data.get("result")
        kind, status = (_text(result.get("kind")), _text(result.get("status"))) if isinstance(result, dict) else ("", "")
        await db.execute(_FINISHED, (run, request, kind, _text(data.get("experiment")) or None, status, record.seq))
    elif record.kind == "job.voided":
        await db.execute(_VOIDED, (run, request))


def _text(value: object) -> str:
    # Whatever a damaged or newer record holds here, one bad row must not stop the projection.
    return value if isinstance(value, str) else ""


async def _experiments(db: aiosqlite.Connection, run: str, state: RunState, *, after: int) -> None:
    changed = [e for e in state.experiments.values() if e.last_seq > after]
    rows = [(run, *values_of(experiment_row(e)), experiment_text(e)) for e in changed]
    await db.executemany(upsert("experiments"), rows)


async def _promotions(db: aiosqlite.Connection, run: str, state: RunState, *, after: int) -> None:
    new = [p for p in state.promotions if p.seq > after]
    rows = [
        PromotionRow(
            number=p.number,
            experiment=p.experiment,
            sha256=p.sha256,
            previous=p.previous,
            rho=p.rho,
            speedup=p.speedup,
            champion_us=p.champion_us,
            seq=p.seq,
            ts=p.ts,
        )
        for p in new
    ]
    await db.executemany(upsert("promotions"), [(run, *values_of(row)) for row in rows])


async def _claims(db: aiosqlite.Connection, run: str, state: RunState) -> None:
    await db.execute("DELETE FROM claims WHERE of_run = ?", (run,))
    await db.executemany(upsert("claims"), [(run, *values_of(row)) for row in claim_rows(state)])
