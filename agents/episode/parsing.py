"""What a reply of an episode says: one python block and one ACTION line.

Invariant: pure and total: any text gives an answer, in time linear in its length; terminal escapes and
control characters are removed first, so they neither hide nor forge a fence or an action.
Not for: whether the code is any good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.bounds import REPLY_CHARS, plain

_FENCE = re.compile(r"(?P<ticks>`{3,})[ \t]*(?P<language>[A-Za-z0-9_+-]*)[ \t]*")
_ACTION = re.compile(r"[ \t]*\**ACTION:\**[ \t]*\**(?P<action>CHECK|SUBMIT)\**[ \t.]*")
PYTHON = ("python", "py", "python3")


@dataclass(frozen=True, slots=True)
class Parsed:
    """One reply, read."""

    code: str | None
    """The one python block; None unless there is exactly one."""
    action: str | None
    """`CHECK` or `SUBMIT`; None unless there is exactly one."""
    problems: tuple[str, ...]
    """Why the reply cannot be acted on, in words for the model."""


def parse_reply(text: str) -> Parsed:
    """Read a reply; one of REPLY_CHARS characters or more is not looked into."""
    if len(text) >= REPLY_CHARS:
        return Parsed(code=None, action=None, problems=(f"the reply has {REPLY_CHARS} characters or more; be brief",))
    blocks, prose, open_fence = _split(plain(text).split("\n"))
    actions = sorted({m["action"] for row in prose if (m := _ACTION.fullmatch(row))})
    code = blocks[0] if len(blocks) == 1 and not open_fence else None
    problems = tuple(_problems(blocks, actions, open_fence=open_fence))
    return Parsed(code=code, action=actions[0] if len(actions) == 1 else None, problems=problems)


def _problems(blocks: list[str], actions: list[str], *, open_fence: bool) -> Iterator[str]:
    if open_fence:
        yield "a code block is not closed"
    if not blocks and not open_fence:
        yield "there is no python block (```python on a line of its own)"
    if len(blocks) > 1:
        yield f"there are {len(blocks)} python blocks; give exactly one, with the whole module"
    if not actions:
        yield "there is no line `ACTION: CHECK` or `ACTION: SUBMIT`"
    if len(actions) > 1:
        yield "there are both `ACTION: CHECK` and `ACTION: SUBMIT`; give one"


def _split(rows: list[str]) -> tuple[list[str], list[str], bool]:
    """Python blocks, rows outside of every block, and whether the last block stays open."""
    blocks: list[str] = []
    prose: list[str] = []
    inside: list[str] | None = None
    ticks, is_python = "", False
    for row in rows:
        fence = _FENCE.fullmatch(row)
        if inside is None and fence:
            inside, ticks, is_python = [], fence["ticks"], fence["language"].lower() in PYTHON
        elif inside is None:
            prose.append(row)
        elif fence and not fence["language"] and len(fence["ticks"]) >= len(ticks):
            blocks += ["\n".join(inside) + "\n"] if is_python else []
            inside = None
        else:
            inside.append(row)
    return blocks, prose, inside is not None
