"""Kills the demo's daemon five times with SIGKILL and checks that nothing is lost, doubled or left over.

    python -m evidence.bench.kill_daemon OUT.json [--kills 5] [--seed N]

One kill falls into a timing block (the gauge says so), the others at random moments of the run. After each
kill: no process of the dead daemon's jobs is left, and the next start goes on with the same run. At the
end: the journal verifies, no request id has two results, and every record that was ever seen is still
there with its hash. Prints one JSON object and writes it to OUT; exit 1 where a check failed.
Not for: timing anything.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import launch
from daemon.client import Client, DaemonError
from state.files import RunFiles
from state.journal import read_records
from state.model import RunState
from state.verification import encoded, rebuild, verify

AT_REST = ("finished", "failed", "stopped")
TIMING_STEPS = ("timing", "pairs")


@dataclass
class Killing:
    """One series of kills on one state directory."""

    directory: Path
    random: random.Random
    run: str = ""
    seen: dict[int, str] = field(default_factory=dict)
    """Hash of every record that a client was given, by seq."""
    kills: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def series(self, count: int) -> RunState:
        """Kill `count` times, then let the run come to rest; return its last state."""
        timing_kill = self.random.randrange(count)
        for number in range(count):
            launched = launch.launch(self.directory)
            async with Client(launched.socket) as client:
                await self._begin(client)
                where = await self._wait(client, until_timing=number == timing_kill)
            if where == "at rest":
                self.faults.append(f"the run was at rest before kill {number + 1}")
                break
            self._kill(launched.pid, where)
        else:
            launched = launch.launch(self.directory)
        async with Client(launched.socket) as client:
            await self._begin(client)
            state = await self._rest(client)
            await client.shutdown()
        return state

    async def _begin(self, client: Client) -> None:
        started = await client.start("builtin:scan", model="scripted", session="demo", title="kills", key="kills")
        if self.run and started.run != self.run:
            self.faults.append(f"a second run appeared: {started.run}")
        self.run = started.run

    async def _wait(self, client: Client, *, until_timing: bool) -> str:
        """Until the moment of the next kill; returns what was under way."""
        moment = time.monotonic() + self.random.uniform(5, 60)
        while True:
            await self._look(client)
            status = (await client.snapshot(self.run)).state.status
            step = _step(await client.gauges(self.run))
            if status in AT_REST:
                return "at rest"
            if until_timing and step in TIMING_STEPS:
                await asyncio.sleep(self.random.uniform(0, 0.3))
                return f"in {step}"
            if not until_timing and time.monotonic() > moment:
                return step or status
            await asyncio.sleep(0.2)

    async def _look(self, client: Client) -> None:
        after = max(self.seen, default=0)
        page = await client.page(self.run, after=after, limit=500)
        self.seen |= {record.seq: record.hash for record in page.records}

    def _kill(self, pid: int, where: str) -> None:
        group = _descendants(pid)
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while (left := [p for p in group if _alive(p)]) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.kills.append({"during": where, "processes": len(group), "left": len(left), "last_seq_seen": max(self.seen, default=0)})
        if left:
            self.faults.append(f"{len(left)} processes outlived the kill {where}")

    async def _rest(self, client: Client) -> RunState:
        while True:
            await self._look(client)
            state = (await client.snapshot(self.run)).state
            if state.status in AT_REST and max(self.seen, default=0) >= state.seq:
                return state
            await asyncio.sleep(1)

    def check(self, live: RunState) -> dict[str, Any]:
        """Hold the journal against what was seen."""
        journal = RunFiles(self.directory, self.run).journal
        found = verify(journal)
        records = list(read_records(journal))
        results = collections.Counter(r.data["request"] for r in records if r.kind == "job.finished")
        doubled = [request for request, number in results.items() if number > 1]
        lost = [seq for seq, digest in self.seen.items() if seq > len(records) or records[seq - 1].hash != digest]
        same = encoded(rebuild(journal)) == encoded(live)
        self.faults += [f"the journal does not verify: {found.message}"] if not found.ok else []
        self.faults += [f"two results for {request}" for request in doubled]
        self.faults += [f"records lost or changed: {lost[:5]}"] if lost else []
        self.faults += [] if same else ["the rebuilt state differs from the live one"]
        return {
            "records": len(records),
            "seen": len(self.seen),
            "results": len(results),
            "doubled": doubled,
            "lost": lost,
            "voided": sum(r.kind == "job.voided" for r in records),
            "resumed": sum(r.kind == "run.resumed" for r in records),
            "rebuilt_equals_live": same,
            "verified": found.ok,
            "status": live.status,
            "promotions": len(live.promotions),
        }


def _step(gauges: dict[str, Any]) -> str:
    """The step of the running job, as the gauges say."""
    text = json.dumps(gauges)
    return next(
        (step for step in (*TIMING_STEPS, "build", "correctness", "references", "control", "baseline") if f'"step": "{step}"' in text), ""
    )


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = collections.defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            children[int(stat[stat.rindex(")") + 2 :].split()[1])].append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        for child in children[waiting.pop()]:
            found.append(child)
            waiting.append(child)
    return found


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


def main() -> int:
    """Run the series and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-kills-") as directory:
        killing = Killing(Path(directory) / "state", random.Random(options.seed))
        started = time.monotonic()
        try:
            live = asyncio.run(killing.series(options.kills))
        except DaemonError as error:
            print(f"kill_daemon: {error}", file=sys.stderr)
            return 1
        report = {
            "command": f"python -m evidence.bench.kill_daemon OUT.json --kills {options.kills} --seed {options.seed}",
            "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()},
            "wall_s": round(time.monotonic() - started, 1),
            "kills": killing.kills,
            "journal": killing.check(live),
            "faults": killing.faults,
        }
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))
    return 1 if killing.faults else 0


if __name__ == "__main__":
    sys.exit(main())
