"""Process groups: recorded before they can do anything, killed whole, verified gone.

A child leads a session of its own. It writes `<pid> <kernel start time>` into its record before the
program replaces the shell, so even a daemon killed in that very moment leaves a record behind.
Invariant: nothing is signalled unless the pid still is the process of the record (same boot, same
start time), so a reused pid is never hit; a group counts as gone when only zombies are left of it.
Not for: what a judge starts in namespaces of its own; those die with the judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

RECORD_PREFIX = "process-"
_RECORDING_SHELL = 'read -r line < "/proc/$$/stat" && printf "%s\\n" "$line" > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The leader of one process group."""

    pid: int
    started: str
    """Clock ticks since boot, field 22 of /proc/<pid>/stat."""


def boot_id() -> str:
    """Changes with every boot of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def record_path(directory: Path) -> Path:
    """Where a child started for `directory` records itself; the name carries the boot."""
    return directory / f"{RECORD_PREFIX}{boot_id()}"


def recording(command: list[str], record: Path) -> list[str]:
    """`command` behind a shell that writes `record` first and then becomes the command."""
    return ["/bin/sh", "-c", _RECORDING_SHELL, str(record), *command]


def read_record(path: Path) -> GroupRecord | None:
    """The recorded leader; None where the record is missing, torn or of an earlier boot."""
    if path.name != f"{RECORD_PREFIX}{boot_id()}":
        return None
    try:
        pid, started = _parse_stat(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, IndexError):
        return None
    return GroupRecord(pid=pid, started=started)


def is_same(record: GroupRecord) -> bool:
    """Whether the recorded leader itself still runs."""
    stat = _stat(record.pid)
    return stat is not None and stat[1] == record.started


def members(group: int) -> list[int]:
    """Processes of the group that are not zombies."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in ("Z", "X"):
                found.append(int(entry))
    return found


async def end_group(group: int, *, grace_s: float = 2.0, limit_s: float = 10.0) -> list[int]:
    """Ask the group to end, then kill it; return the pids that outlived even that."""
    _signal(group, signal.SIGTERM)
    if await _gone(group, within_s=grace_s):
        return []
    _signal(group, signal.SIGKILL)
    await _gone(group, within_s=limit_s)
    return members(group)


async def end_orphans(jobs: Path) -> list[int]:
    """Kill every group that an earlier life of the daemon left recorded under `jobs`; return their leaders."""
    ended = []
    for record in _recorded(jobs):
        if is_same(record) or _leaderless(record):
            await end_group(record.pid, grace_s=0.2)
            ended.append(record.pid)
    return ended


def _recorded(jobs: Path) -> list[GroupRecord]:
    found = (read_record(path) for path in sorted(jobs.glob(f"*/{RECORD_PREFIX}*")))
    return [record for record in found if record is not None]


def _leaderless(record: GroupRecord) -> bool:
    """Whether the leader is gone while others of its group remain: the kernel keeps a group's id from reuse."""
    return _stat(record.pid) is None and bool(members(record.pid))


async def _gone(group: int, *, within_s: float) -> bool:
    deadline = asyncio.get_running_loop().time() + within_s
    pause_s = 0.01
    while members(group):
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.2)
    return True


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _stat(pid: int) -> tuple[int, str] | None:
    try:
        return _parse_stat(Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, IndexError):
        return None


def _parse_stat(line: str) -> tuple[int, str]:
    pid = int(line.split(" ", 1)[0])
    return pid, line.rpartition(")")[2].split()[19]
