"""The projection: runs, experiments, jobs and records as SQLite tables, for lists, filters and the API.

Invariant: everything in it follows from journals. `apply` is one transaction and does nothing for
records it already holds; applying a journal in any batches, or rebuilding from it, gives the same rows.
A file of an older schema, or one that SQLite cannot read, is dropped and filled again.
Not for: truth (the journal) or a run's full state (`state.model.RunState`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import msgspec

from state.checkpoint import Source
from state.errors import NewerVersion, NotWritable
from state.events import Record
from state.follower import Follower
from state.model import RunState
from state.reducer import fold
from state.rows import (
    ClaimRow,
    EventRow,
    ExperimentRow,
    JobRow,
    PromotionRow,
    RunRow,
)
from state.schema import SCHEMA_VERSION, TABLES, columns_of, create_statements
from state.store_writes import project

BATCH_RECORDS = 1000
"""Records in one transaction of `catch_up`."""

LIST_LIMIT = 1000
"""Most rows of one answer."""

Row = TypeVar("Row", bound=msgspec.Struct)


class Store:
    """One SQLite file; one writer, readers beside it."""

    def __init__(self, path: Path, *, writer: aiosqlite.Connection, reader: aiosqlite.Connection, dropped: str) -> None:
        self.path = path
        self.dropped = dropped
        """Why an earlier file was dropped; empty when it was not. The caller then catches every run up."""
        self._writer = writer
        self._reader = reader
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path) -> Store:
        """Open or create the projection; NewerVersion when a newer Ratchet made it, NotWritable when it cannot be written."""
        dropped = ""
        _touch(path)
        try:
            try:
                writer = await _open_writer(path)
            except _Outdated as why:
                dropped = str(why)
                _delete(path)
                writer = await _open_writer(path)
            reader = await aiosqlite.connect(path)
            await reader.execute("PRAGMA query_only = 1")
        except sqlite3.OperationalError as error:
            raise NotWritable(path, OSError(0, str(error))) from error
        return cls(path, writer=writer, reader=reader, dropped=dropped)

    async def close(self) -> None:
        """Close both connections."""
        await self._reader.close()
        await self._writer.close()

    async def apply(self, records: Sequence[Record], *, state: RunState) -> None:
        """Project records of one run, in order; `state` is the run's state at or after the last of them."""
        if not records:
            return
        async with self._transaction():
            known = await self._known(records[0].run)
            fresh = [record for record in records if record.seq > known[0]]
            await project(self._writer, fresh, state=state, after=known[0])

    async def catch_up(self, source: Source, *, run: str, state: RunState) -> int:
        """Project what `source` holds beyond what was projected and return how many records that was.

        A run whose last projected record is not in `source` any more is projected from the start.
        """
        seq, digest = await self._known(run)
        if seq and source.hash_at(seq) != digest:
            await self.forget(run)
            seq = 0
        first, batch = seq, list[Record]()
        for record in source.walk(seq):
            seq = record.seq
            batch.append(record)
            if len(batch) == BATCH_RECORDS:
                await self.apply(batch, state=state)
                batch.clear()
        await self.apply(batch, state=state)
        return seq - first

    async def rebuild(self, journal: Path) -> RunState:
        """Project one journal from nothing and return the state folded on the way."""
        with Follower(journal) as source:
            source.poll()
            records = source.since(0, limit=1)
            state = fold(source.walk())
            if records:
                await self.forget(records[0].run)
                await self.catch_up(source, run=records[0].run, state=state)
        return state

    async def forget(self, run: str) -> None:
        """Remove a run's rows; its files are untouched."""
        async with self._transaction():
            for table in TABLES:
                await self._writer.execute(f"DELETE FROM {table} WHERE {'run' if table == 'runs' else 'of_run'} = ?", (run,))

    async def list_runs(self) -> list[RunRow]:
        """Every run, the latest started first."""
        return await self._select("runs", RunRow, "1 ORDER BY started_ts DESC, run DESC", ())

    async def run(self, run: str) -> RunRow | None:
        """One run, if it is known."""
        return next(iter(await self._select("runs", RunRow, "run = ?", (run,))), None)

    async def experiments(
        self, run: str, *, status: str | None = None, text: str | None = None, limit: int = LIST_LIMIT
    ) -> list[ExperimentRow]:
        """Experiments in the order they were opened; `text` is looked for in titles, conclusions and explanations."""
        where, values = "of_run = ?", [run]
        if status is not None:
            where, values = f"{where} AND status = ?", [*values, status]
        if text:
            where, values = f"{where} AND search LIKE ? ESCAPE '\\'", [*values, _pattern(text)]
        return await self._select("experiments", ExperimentRow, f"{where} ORDER BY opened_seq, id", values, limit=limit)

    async def events(
        self, run: str, *, after: int = 0, kinds: Collection[str] | None = None, text: str | None = None, limit: int = LIST_LIMIT
    ) -> list[EventRow]:
        """Records with seq > `after`, of these kinds, whose headline or actor contains `text`."""
        where, values = "of_run = ? AND seq > ?", list[Any]([run, after])
        if kinds is not None:
            where, values = f"{where} AND kind IN ({', '.join('?' * len(kinds))})", [*values, *sorted(kinds)]
        if text:
            where += " AND (headline LIKE ? ESCAPE '\\' OR actor LIKE ? ESCAPE '\\')"
            values = [*values, _pattern(text), _pattern(text)]
        return await self._select("records", EventRow, f"{where} ORDER BY seq", values, limit=limit)

    async def promotions(self, run: str) -> list[PromotionRow]:
        """Promotions in order."""
        return await self._select("promotions", PromotionRow, "of_run = ? ORDER BY number", (run,))

    async def jobs(self, run: str) -> list[JobRow]:
        """Requests to the judge in the order of their first start."""
        return await self._select("jobs", JobRow, "of_run = ? ORDER BY started_seq, request", (run,))

    async def claims(self, run: str) -> list[ClaimRow]:
        """Claims of the current world model in the document's order."""
        return await self._select("claims", ClaimRow, "of_run = ? ORDER BY place", (run,))

    async def _known(self, run: str) -> tuple[int, str]:
        async with self._writer.execute("SELECT seq, hash FROM runs WHERE run = ?", (run,)) as cursor:
            row = await cursor.fetchone()
        return (row[0], row[1]) if row is not None else (0, "")

    async def _select(self, table: str, row: type[Row], where: str, values: Sequence[Any], *, limit: int = LIST_LIMIT) -> list[Row]:
        sql = f"SELECT {columns_of(table)} FROM {table} WHERE {where} LIMIT ?"
        async with self._reader.execute(sql, (*values, max(0, min(limit, LIST_LIMIT)))) as cursor:
            found = await cursor.fetchall()
        return [msgspec.convert(dict(zip(row.__struct_fields__, one, strict=True)), row, strict=False) for one in found]

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        async with self._lock:
            try:
                await self._writer.execute("BEGIN IMMEDIATE")
                yield
                await self._writer.commit()
            except sqlite3.OperationalError as error:
                await self._writer.rollback()
                raise NotWritable(self.path, OSError(0, str(error))) from error
            except BaseException:
                await self._writer.rollback()
                raise


class _Outdated(Exception):
    """The file is of an older schema or no database at all."""


async def _open_writer(path: Path) -> aiosqlite.Connection:
    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        await _prepare(connection, path)
    except sqlite3.OperationalError:
        await connection.close()
        raise
    except sqlite3.DatabaseError as error:
        await connection.close()
        raise _Outdated(f"it was not a readable database: {error}") from error
    except BaseException:
        await connection.close()
        raise
    return connection


async def _prepare(connection: aiosqlite.Connection, path: Path) -> None:
    async with connection.execute("PRAGMA user_version") as cursor:
        row = await cursor.fetchone()
    version = int(row[0]) if row is not None else 0
    if version > SCHEMA_VERSION:
        raise NewerVersion(str(path), found=version, known=SCHEMA_VERSION)
    async with connection.execute("SELECT count(*) FROM sqlite_master") as cursor:
        row = await cursor.fetchone()
    if row is not None and row[0] and version < SCHEMA_VERSION:
        raise _Outdated(f"it had schema version {version}, this is {SCHEMA_VERSION}")
    await connection.execute("PRAGMA journal_mode = WAL")
    # Losing the last transactions in a power cut is harmless: the journal catches the projection up.
    await connection.execute("PRAGMA synchronous = NORMAL")
    if version == 0:
        await connection.execute("BEGIN IMMEDIATE")
        for statement in create_statements():
            await connection.execute(statement)
        await connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        await connection.commit()


def _touch(path: Path) -> None:
    # Opened here first: a connection that fails to open leaves its thread behind a closed event loop.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise NotWritable(path, error) from error


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
