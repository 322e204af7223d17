"""A checkpoint of the reducer beside the journal, so that opening a long run is quick.

The sidecar is a cache: it is used only if the journal holds the very record it was taken at, and only
by the code that made it (a fingerprint of the folding sources is part of it), so an upgrade or an
edited journal can never resurrect a state the records do not give.
Invariant: `restore` equals folding the whole journal, whether or not there is a usable checkpoint.
Not for: anything that is not in the journal; deleting the file loses only time.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from state.events import Record
from state.files import atomic_write, checkpoint_path
from state.model import RunState
from state.reducer import apply

EVERY = 1000
"""Records after which a new checkpoint is worth its write."""


class Source(Protocol):
    """What a checkpoint is checked against: a `Journal`, a `Follower` or a `LineIndex`."""

    @property
    def tail_seq(self) -> int:
        """Seq of the last record."""

    def hash_at(self, seq: int) -> str | None:
        """Hash of one record."""

    def walk(self, after: int = 0) -> Iterator[Record]:
        """Records after `after`."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the sidecar."""

    seq: int
    hash: str
    """Of the record at `seq`."""
    code: str
    """Fingerprint of the code that folded it."""
    state: RunState


@functools.cache
def code_fingerprint() -> str:
    """sha256 over the sources that decide what a state looks like."""
    here = Path(__file__).parent
    names = ["events.py", "model.py", "outcome.py", "reducer.py"]
    digest = hashlib.sha256()
    for path in [*(here / name for name in names), *sorted((here / "folding").glob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def save(journal_path: Path, state: RunState, *, digest: str) -> None:
    """Write the checkpoint of `state`; `digest` is the hash of the record at `state.seq`."""
    checkpoint = Checkpoint(seq=state.seq, hash=digest, code=code_fingerprint(), state=state)
    atomic_write(checkpoint_path(journal_path), msgspec.json.encode(checkpoint))


def load(journal_path: Path, source: Source) -> RunState | None:
    """The checkpointed state if it belongs to these records and this code, else None."""
    try:
        raw = checkpoint_path(journal_path).read_bytes()
        checkpoint = msgspec.json.decode(raw, type=Checkpoint)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    fits = checkpoint.seq > 0 and checkpoint.seq == checkpoint.state.seq and checkpoint.code == code_fingerprint()
    return checkpoint.state if fits and source.hash_at(checkpoint.seq) == checkpoint.hash else None


def restore(journal_path: Path, source: Source) -> RunState:
    """The state after every record of `source`, from the checkpoint where there is a usable one."""
    state = load(journal_path, source) or RunState()
    for record in source.walk(state.seq):
        apply(state, record)
    return state
