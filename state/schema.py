"""The tables of the projection.

One table per row type of `state.rows`; columns are its fields, so the two cannot drift apart.
Invariant: `SCHEMA_VERSION` changes whenever a table does; an older file is dropped, never migrated,
because the journals hold everything.
Not for: queries (`state.store`).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable

import msgspec

from state.rows import ClaimRow, EventRow, ExperimentRow, JobRow, PromotionRow, RunRow

SCHEMA_VERSION = 1

TABLES: dict[str, tuple[type[msgspec.Struct], str]] = {
    "runs": (RunRow, "PRIMARY KEY (run)"),
    "records": (EventRow, "PRIMARY KEY (of_run, seq)"),
    "experiments": (ExperimentRow, "search TEXT NOT NULL DEFAULT '', PRIMARY KEY (of_run, id)"),
    "promotions": (PromotionRow, "PRIMARY KEY (of_run, number)"),
    "jobs": (JobRow, "PRIMARY KEY (of_run, request)"),
    "claims": (ClaimRow, "PRIMARY KEY (of_run, claim)"),
}
"""Table to its row type and constraints; all but `runs` have a leading `of_run`."""

INDEXES = (
    "CREATE INDEX records_by_kind ON records (of_run, kind, seq)",
    "CREATE INDEX experiments_by_status ON experiments (of_run, status, opened_seq)",
)

_SQL_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER"}


def create_statements() -> Iterable[str]:
    """Everything that makes an empty projection."""
    for table, (row, constraint) in TABLES.items():
        columns = [_column(name, hint) for name, hint in typing.get_type_hints(row).items()]
        leading = [] if table == "runs" else ["of_run TEXT NOT NULL"]
        yield f"CREATE TABLE {table} ({', '.join([*leading, *columns, constraint])}) STRICT, WITHOUT ROWID"
    yield from INDEXES


def columns_of(table: str) -> str:
    """The row type's columns, for a SELECT."""
    return ", ".join(f'"{name}"' for name in TABLES[table][0].__struct_fields__)


def upsert(table: str) -> str:
    """The statement that writes one whole row; parameters are `values_of`, after the run where there is one."""
    names = [f'"{name}"' for name in TABLES[table][0].__struct_fields__]
    names = names if table == "runs" else ["of_run", *names]
    names += ["search"] if table == "experiments" else []
    return f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def values_of(row: msgspec.Struct) -> list[object]:
    """A row's values in the order of its columns."""
    return list(msgspec.structs.astuple(row))


def _column(name: str, hint: object) -> str:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    sql = next(_SQL_TYPES[option] for option in options if option in _SQL_TYPES)
    return f'"{name}" {sql}' + ("" if type(None) in options else " NOT NULL")
