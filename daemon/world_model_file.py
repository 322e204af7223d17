"""`WORLD_MODEL.md` beside the journal: the latest document, for people.

Invariant: the file is written after the record, so it is never ahead of the journal; a text in it that
no record holds was written by a person and is kept in `archive/` before it is replaced.
A failure to write it is logged and costs nothing but the file.
Not for: reading the document back into the run.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence

import structlog

from daemon.tasks import cancel
from state.errors import StateError
from state.events import Record
from state.files import RunFiles, atomic_write
from state.model import RunState

_log = structlog.get_logger()


class WorldModelFile:
    """Keeps one run's file at the latest document, in a task of its own."""

    def __init__(self, files: RunFiles, state: RunState, *, known: Iterable[str]) -> None:
        self._files = files
        self._state = state
        self._known = set(known)
        self._due = asyncio.Event()
        if state.world_model_text:
            self._due.set()
        self._task = asyncio.create_task(self._work(), name=f"world model {files.run}")

    def observe(self, records: Sequence[Record], state: RunState) -> None:
        """Note the documents among new records (an `Observer`)."""
        texts = documents(records)
        if texts:
            self._known.update(texts)
            self._due.set()

    async def close(self) -> None:
        """Write what is due and end the task."""
        await cancel(self._task)
        if self._due.is_set():
            await self._write()

    async def _work(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await self._write()

    async def _write(self) -> None:
        try:
            set_aside = await asyncio.to_thread(write, self._files, self._state.world_model_text, known=frozenset(self._known))
        except StateError as error:
            _log.error("cannot write the world model", run=self._files.run, why=error.message)
            return
        if set_aside:
            _log.warning("an edit of WORLD_MODEL.md by hand was set aside", run=self._files.run, kept=set_aside)


def documents(records: Iterable[Record]) -> set[str]:
    """sha256 of every document among `records`."""
    return {str(record.data.get("sha256")) for record in records if record.kind == "world_model.edited"}


def write(files: RunFiles, text: str, *, known: Iterable[str]) -> str | None:
    """Make `text` the file's content; return the archive's name where a person's text was set aside.

    `known` are the sha256 of every text that the journal holds.
    """
    set_aside = _set_aside(files, {*known, _sha256(text.encode())})
    atomic_write(files.world_model, text)
    return set_aside


def _set_aside(files: RunFiles, known: set[str]) -> str | None:
    try:
        present = files.world_model.read_bytes()
    except FileNotFoundError:
        return None
    digest = _sha256(present)
    if digest in known:
        return None
    name = f"WORLD_MODEL.edited-{digest[:12]}.md"
    atomic_write(files.archive / name, present)
    return name


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
