"""Checking a journal, and deriving everything again from it: `state verify` and `state rebuild`.

`verify` reports rather than raises: the chain line by line, then what records must be to each other,
then that the state derives the same in every way it is derived.
Invariant: reads only; nothing is locked, repaired or written.
Not for: printing (the command line does), or repairing (`state.journal` drops a torn end on open).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from state import checkpoint
from state.consistency import Consistency, Problem
from state.errors import Damaged
from state.events import FORMAT_VERSION
from state.files import checkpoint_path
from state.follower import Follower
from state.model import RunState
from state.reducer import apply, fold

PROBLEMS_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found in one journal."""

    path: str
    run: str
    records: int
    """Intact ones: those before the first damage."""
    last_hash: str
    """Of the last intact record, for pinning elsewhere; 64 zeros when there is none."""
    first_ts: str
    last_ts: str
    torn_bytes: int
    """After the last complete line: dropped when the journal is opened for writing."""
    newest_version: int
    kinds: dict[str, int]
    unknown_kinds: tuple[str, ...]
    checkpoint: str
    """`none`, `unused` (of other records or other code), `agrees`, or `differs`, which is a problem."""
    problems: tuple[Problem, ...]
    state: RunState = field(repr=False)
    """Folded from the intact records."""

    @property
    def ok(self) -> bool:
        """Whether the journal is whole and holds something."""
        return self.records > 0 and not self.problems

    @property
    def code(self) -> int:
        """Exit code of `state verify`."""
        return 0 if self.ok else 1

    @property
    def message(self) -> str:
        """The verdict in one line."""
        if self.problems:
            return str(self.problems[0]) + (f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else "")
        if not self.records:
            return f"{self.path} holds no complete record: nothing to verify"
        torn = f"; a torn last line of {self.torn_bytes} bytes is not part of it" if self.torn_bytes else ""
        newer = f"; written by a newer version ({self.newest_version})" if self.newest_version > FORMAT_VERSION else ""
        return f"{self.records} records of run {self.run}, chain intact, last hash {self.last_hash}{torn}{newer}"


def verify(path: Path) -> Verification:
    """Check one journal whole; Unreadable when there is no such file."""
    with Follower(path) as source:
        problems = _chain_problems(source)
        facts = Consistency(candidates=path.parent / "candidates")
        state, kinds, first_ts = RunState(), dict[str, int](), ""
        try:
            for record in source.walk():
                apply(state, record)
                facts.add(record)
                kinds[record.kind] = kinds.get(record.kind, 0) + 1
                first_ts = first_ts or record.ts
            found, word = _derivations(path, source, state)
        except Damaged as error:
            # The chain holds over it, yet it is not a record: only a writer that is not ours makes such a line.
            found, word = [Problem(line=error.line, why=error.why)], "unused"
        problems += facts.problems()
        return Verification(
            path=str(path),
            run=state.run or source.run or "",
            records=source.tail_seq,
            last_hash=source.last_hash,
            first_ts=first_ts,
            last_ts=state.last_ts,
            torn_bytes=0 if problems and problems[0].chain else source.torn_bytes,
            newest_version=source.newest_version,
            kinds=dict(sorted(kinds.items())),
            unknown_kinds=tuple(sorted(state.unknown_kinds)),
            checkpoint=word,
            problems=tuple((problems + found)[:PROBLEMS_KEPT]),
            state=state,
        )


def rebuild(path: Path) -> RunState:
    """The state of a run, folded from its journal alone; Damaged where the chain does not hold."""
    with Follower(path) as source:
        source.poll()
        return fold(source.walk())


def encoded(state: RunState) -> bytes:
    """A state as bytes: two states are the same when these are."""
    return msgspec.json.encode(state, order="deterministic")


def _chain_problems(source: Follower) -> list[Problem]:
    try:
        source.poll()
    except Damaged as error:
        return [Problem(line=error.line, why=error.why, chain=True)]
    return []


def _derivations(path: Path, source: Follower, state: RunState) -> tuple[list[Problem], str]:
    found: list[Problem] = []
    if msgspec.json.decode(msgspec.json.encode(state), type=RunState) != state:
        found.append(Problem(line=state.seq, why="the state does not survive being sent: it is not plain data"))
    saved = checkpoint.load(path, source)
    if saved is None:
        return found, "unused" if checkpoint_path(path).exists() else "none"
    for record in source.walk(saved.seq):
        apply(saved, record)
    if encoded(saved) == encoded(state):
        return found, "agrees"
    found.append(Problem(line=state.seq, why=f"the checkpoint beside it gives another state; delete {checkpoint_path(path).name}"))
    return found, "differs"
