"""Orchestrator's tool `edit_world_model`, and the one way agents write that document.

Invariant: what is journalled is the whole document after the edit, and each moved confidence; the rules
(line limit, refuted claims) are `state.belief_changes`' own. A call executed again finds its edit.
Not for: an operator's edits of the file, which are the daemon's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from agents.bounds import clip, plain
from agents.errors import ToolError
from agents.tools.desk import Desk, earlier_effect
from agents.tools.tool import Tool, ToolInput
from state.belief_changes import Change, apply_changes
from state.belief_rules import facts_of, roots_of
from state.errors import LineLimit, WorldModelError
from state.events import ClaimChange, WorldModelEdited
from state.world_model import NEW_DOCUMENT, WorldModel, archive, line_count, parse, render


class EditWorldModel(ToolInput, frozen=True, kw_only=True):
    """Changes of the world model, all applied or none."""

    why: str
    changes: list[Change] = []
    archive: list[str] = []
    """Ids of claims to take out of the document (the journal keeps them), when it gets long."""


def make_edit_world_model(desk: Desk) -> Tool[EditWorldModel]:
    """Edit the document."""

    async def run(asked: EditWorldModel, cause: str) -> dict[str, Any]:
        if not asked.changes and not asked.archive:
            raise ToolError("there is nothing to change", "give `changes` or claims to `archive`")
        edited = await edit(desk, asked.changes, archived=asked.archive, why=asked.why, cause=cause)
        return {"lines": edited.lines, "changes": msgspec.to_builtins(edited.changes)}

    about = (
        "Change the world model: add, revise, bury or reopen claims, replace the notes, archive what is settled. At "
        "250 lines archive and distil."
    )
    return Tool(name="edit_world_model", about=about, takes=EditWorldModel, run=run)


async def edit(desk: Desk, changes: Sequence[Change], *, why: str, cause: str, archived: Sequence[str] = ()) -> WorldModelEdited:
    """Apply and journal changes, or return the edit this cause already made."""
    if (earlier := await earlier_edit(desk, cause)) is not None:
        return earlier
    model, moved = preview(desk, changes, archived=archived)
    return await record_edit(desk, model, moved, why=why, cause=cause)


async def earlier_edit(desk: Desk, cause: str) -> WorldModelEdited | None:
    """The edit that this call already made, before a crash."""
    seq = earlier_effect(desk.port, "world_model.edited", cause)
    return msgspec.convert((await desk.port.read(seq)).data, WorldModelEdited) if seq is not None else None


def current_model(desk: Desk) -> WorldModel:
    """The document as it stands."""
    return parse(desk.port.state.world_model_text or NEW_DOCUMENT)


def preview(desk: Desk, changes: Sequence[Change], *, archived: Sequence[str] = ()) -> tuple[WorldModel, list[ClaimChange]]:
    """The changed document and what moved, not yet journalled; a refused change is a `ToolError`."""
    try:
        model = current_model(desk)
        if archived:
            model, _ = archive(model, archived, why="archived")
        return apply_changes(model, changes, roots=roots_of(facts_of(desk.port.state)))
    except (WorldModelError, LineLimit) as error:
        raise ToolError(error.message, error.hint) from error


async def record_edit(
    desk: Desk, model: WorldModel, moved: Sequence[ClaimChange], *, why: str, cause: str, actor: str | None = None
) -> WorldModelEdited:
    """Journal the document."""
    text = render(model)
    edited = WorldModelEdited(
        sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
        lines=line_count(model),
        text=text,
        changes=list(moved),
        why=clip(plain(why), 1000),
        cause=cause,
    )
    record = await desk.port.record("world_model.edited", actor or desk.agent, edited)
    return msgspec.convert(record.data, WorldModelEdited)
