"""Where a run's files lie, and how one is written so that a crash leaves the old or the new one whole.

Invariant: a path that came from a name is inside its root; names are checked, never cleaned up.
Not for: what the files hold.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from state.errors import BadName, NotWritable, Unreadable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def state_dir(explicit: Path | str | None = None) -> Path:
    """The state directory: `--state-dir`, else systemd's StateDirectory, else the user's."""
    if explicit:
        return Path(explicit).expanduser().absolute()
    # systemd separates several directories with colons; the first is ours.
    if given := os.environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return Path(given).absolute()
    return platformdirs.user_state_path("ratchet", appauthor=False)


def new_run_id(problem: str, *, now: datetime.datetime, token: str | None = None) -> str:
    """A run id that sorts by start and says its problem, e.g. `20261008-174200-softmax-3f9a`."""
    stem = problem.rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".py")
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:32].rstrip("-") or "run"
    return f"{now.astimezone(datetime.UTC):%Y%m%d-%H%M%S}-{slug}-{token or secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The paths of one run; nothing is created until `create`."""

    root: Path
    """The state directory."""
    run: str

    def __post_init__(self) -> None:
        _check_name(self.run, "a run")

    @property
    def directory(self) -> Path:
        """`runs/<run>`."""
        return self.root / "runs" / self.run

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.directory / "run.toml"

    @property
    def journal(self) -> Path:
        """The journal."""
        return self.directory / "attempts.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The reducer's checkpoint beside the journal."""
        return checkpoint_path(self.journal)

    @property
    def world_model(self) -> Path:
        """The world model that a person may edit."""
        return self.directory / "WORLD_MODEL.md"

    @property
    def archive(self) -> Path:
        """What was distilled out of the world model."""
        return self.directory / "archive"

    @property
    def candidates(self) -> Path:
        """Candidate texts by hash."""
        return self.directory / "candidates"

    @property
    def experiments(self) -> Path:
        """The workers' sandbox directories."""
        return self.directory / "experiments"

    @property
    def report(self) -> Path:
        """Where reports go."""
        return self.directory / "report"

    def candidate(self, sha256: str) -> Path:
        """Path of one candidate's text."""
        if not _SHA256.fullmatch(sha256):
            raise BadName(f"{sha256[:80]!r} is not a sha256")
        return self.candidates / f"{sha256}.py"

    def experiment(self, experiment: str) -> Path:
        """The sandbox directory of one experiment."""
        _check_name(experiment, "an experiment")
        return self.experiments / experiment

    def create(self) -> None:
        """Make the run's directories, private to the user."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in (self.archive, self.candidates, self.experiments, self.report):
                path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise NotWritable(self.directory, error) from error
        sync_directory(self.directory.parent)


def list_runs(root: Path) -> list[str]:
    """Ids of the runs that have a journal, oldest first."""
    return sorted(path.parent.name for path in (root / "runs").glob("*/attempts.jsonl"))


def store_path(root: Path) -> Path:
    """The projection of every run below `root`."""
    return root / "store.sqlite"


def checkpoint_path(journal: Path) -> Path:
    """The sidecar that holds a journal's reducer checkpoint."""
    return journal.with_name(journal.name + ".checkpoint")


def store_candidate(files: RunFiles, text: str) -> str:
    """Keep one candidate's text durably and return its sha256; a text already kept is left alone."""
    data = text.encode()
    sha256 = hashlib.sha256(data).hexdigest()
    path = files.candidate(sha256)
    if not path.exists():
        atomic_write(path, data)
    return sha256


def read_candidate(files: RunFiles, sha256: str) -> str:
    """The text with this hash; Unreadable when it is missing or is no longer that text."""
    path = files.candidate(sha256)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot read candidate {sha256[:12]}: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unreadable(f"{path} is not the text it is named after", hint="restore it from a copy; its name is the sha256 of its text")
    return data.decode()


def atomic_write(path: Path, data: bytes | str) -> None:
    """Replace `path` durably: readers see the old text or the new one, also after a crash."""
    raw = data.encode() if isinstance(data, str) else data
    temporary: str | None = None
    try:
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise NotWritable(path, error) from error
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise NotWritable(directory, error) from error


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name) or ".." in name:
        raise BadName(f"{name[:80]!r} is not the name of {what}", hint="letters, digits, dot, dash and underscore, at most 100")
