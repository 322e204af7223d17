"""Gives a worker hostile candidates in a row and looks whether the judge stays up, and how it calls each.

    python -m evidence.bench.hostile_candidates OUT.json [--device cpu] [--act NAME ...] [--place PLACE ...]

Each act is done at several places of a candidate's life, with the static gate left out. After each one: its
status is one that the act deserves, nothing of its sandbox runs any more, and no work folder is left. After
every tenth an honest kernel must be found right. Prints one JSON object and writes it to OUT, which is kept
up to date, so that a stopped series goes on where it was; exit 1 where something was wrong.
Not for: speed, or for candidates that cheat (`ratchet qualify`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.records import Job, JobKind, Result, Source, Status, decode, dumps

TIMEOUT_S = 5.0
PATIENCE_S = 300.0
HONEST_EVERY = 10
GONE_WITHIN_S = 10.0

PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.tanh(x) * 2 + self.shift


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return [32]
"""
HONEST = '''import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline("ext", """
#include <cmath>
torch::Tensor squash(torch::Tensor x, torch::Tensor shift) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); i++)
    y.data_ptr<float>()[i] = std::tanh(x.data_ptr<float>()[i]) * 2 + shift.data_ptr<float>()[i % shift.numel()];
  return y;
}
""", functions=["squash"])


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        return ext.squash(x, self.shift)
'''
CANDIDATE = """import ctypes, gc, mmap, os, resource, signal, socket, subprocess, sys, threading, time
import torch

calls = []


def act():
{act}


{at_import}
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(features))
        {at_init}

    def forward(self, x):
        calls.append(None)
        {at_forward}
        return torch.tanh(x) * 2 + self.shift
"""
PLACES = {
    "import": {"at_import": "act()"},
    "init": {"at_init": "act()"},
    "forward": {"at_forward": "act()"},
    "third call": {"at_forward": "len(calls) == 3 and act()"},
}
CRASHED = frozenset({Status.RUNTIME_ERROR})
HUNG = frozenset({Status.TIMEOUT})
SURVIVED = frozenset({Status.NO_CUSTOM_KERNEL})
"""What it did harmed nobody, its answer is right, and no kernel of its own was in it."""
STOPPED = CRASHED | HUNG
HARMLESS = SURVIVED | CRASHED
CAUGHT = frozenset({Status.TAMPERED})
ACTS: dict[str, tuple[frozenset[Status], str]] = {
    "segmentation fault": (CRASHED, "ctypes.string_at(0)"),
    "abort": (CRASHED, "os.abort()"),
    "exit 0": (CRASHED, "os._exit(0)"),
    "SystemExit": (CRASHED, "raise SystemExit(0)"),
    "KeyboardInterrupt": (CRASHED, "raise KeyboardInterrupt"),
    "kills itself": (HARMLESS, "os.kill(os.getpid(), signal.SIGKILL)"),
    "kills everybody": (HARMLESS, "os.kill(-1, signal.SIGKILL)"),
    "kills its init": (HARMLESS, "os.kill(1, signal.SIGKILL)"),
    "stops itself": (STOPPED | SURVIVED | CAUGHT, "os.kill(os.getpid(), signal.SIGSTOP)"),
    "recursion without end": (STOPPED, "sys.setrecursionlimit(1 << 30)\nf = lambda: f()\nf()"),
    "loop without end": (HUNG, "while True: pass"),
    "sleep without end": (HUNG, "time.sleep(1e6)"),
    "deadlock": (HUNG, "lock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    "signals blocked": (HUNG, "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"),
    "an alarm a millisecond": (
        STOPPED | SURVIVED,
        "def ring(*_): raise RuntimeError('ring')\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)",
    ),
    "memory in pieces": (STOPPED, "kept = []\nwhile True: kept.append(bytearray(os.urandom(1) * (64 << 20)))"),
    "memory in one piece": (STOPPED, "torch.ones(1 << 40)"),
    "memory a little at a time": (STOPPED, "kept = []\nwhile True:\n    kept.append(b'x' * (8 << 20))\n    time.sleep(0.001)"),
    "memory shared with nobody": (STOPPED, "area = mmap.mmap(-1, 30 << 30)\nfor i in range(0, 30 << 30, 4096): area[i] = 1"),
    "fork bomb": (STOPPED | SURVIVED, "while True: os.fork()"),
    "shell fork bomb": (HARMLESS | HUNG, "subprocess.Popen(['/bin/sh', '-c', 'b() { b | b & }; b'])"),
    "thread bomb": (STOPPED | SURVIVED, "while True: threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()"),
    "daemon in a session of its own": (
        HARMLESS | HUNG | CAUGHT,
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: pass\n    os._exit(0)",
    ),
    "stdout without end": (STOPPED, "while True: os.write(1, b'x' * 65536)"),
    "stdout flooded": (SURVIVED, "for _ in range(1000): os.write(1, b'y' * 65536)"),
    "stderr with terminal escapes": (SURVIVED, "for _ in range(500): os.write(2, b'\\x1b[2J\\x1b]0;owned\\x07\\xff\\x00' * 2000)"),
    "stdout and stderr closed": (HARMLESS, "os.close(1)\nos.close(2)"),
    "scratch disk filled": (
        HARMLESS | HUNG,
        "f = open('/tmp/big', 'wb')\ntry:\n    while True: f.write(bytes(1 << 24))\nexcept OSError: pass",
    ),
    "files without number": (
        HARMLESS | HUNG,
        "try:\n    for i in range(200000): open(f'/tmp/{i}', 'w').close()\nexcept OSError: pass",
    ),
    "descriptors exhausted": (HARMLESS, "try:\n    while True: os.open('/dev/null', 0)\nexcept OSError: pass"),
    "descriptors closed": (HARMLESS, "os.closerange(3, 4096)"),
    "garbage to every descriptor": (
        HARMLESS | HUNG | CAUGHT,
        "for d in range(3, 64):\n    try: os.write(d, b'{\\xff' * 40)\n    except OSError: pass",
    ),
    "a frame of 4 GiB announced": (
        HARMLESS | HUNG | CAUGHT,
        "for d in range(3, 64):\n    try: os.write(d, b'\\xff\\xff\\xff\\xff')\n    except OSError: pass",
    ),
    "huge exception": (CRASHED, "raise RuntimeError('x' * (64 << 20))"),
    "exception that cannot be shown": (
        CRASHED,
        "class E(Exception):\n    def __str__(self): raise E\n    __repr__ = __str__\nraise E",
    ),
    "exception without encoding": (CRASHED, "raise ValueError('\\udcff\\x1b[2J\\u202e')"),
    "modules cleared": (HARMLESS | CAUGHT, "sys.modules.clear()"),
    "builtins taken away": (HARMLESS | CAUGHT, "import builtins\nfor n in ('len', 'int', 'tuple', 'type'): delattr(builtins, n)"),
    "end that hangs": (HARMLESS, "import atexit\natexit.register(time.sleep, 1e6)"),
    "limits set to nothing": (
        HARMLESS | HUNG,
        "for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_STACK): resource.setrlimit(limit, (1, 1))",
    ),
    "every core, and ahead of all": (
        HARMLESS,
        "os.sched_setaffinity(0, range(os.cpu_count()))\nos.setpriority(os.PRIO_PROCESS, 0, -20)",
    ),
    "traced": (HARMLESS | HUNG | CAUGHT, "ctypes.CDLL(None).ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), signal.SIGTRAP)"),
    "traced in Python": (HARMLESS | CAUGHT, "sys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)"),
}
"""Name, the statuses that it deserves, and what it does."""


def candidate(act: str, place: str) -> str:
    """The text of one hostile candidate."""
    places = {"at_import": "", "at_init": "pass", "at_forward": "pass"} | PLACES[place]
    return CANDIDATE.format(act=textwrap.indent(ACTS[act][1], "    "), **places)


@dataclass
class Series:
    """One worker, and the candidates that it is given."""

    device: str
    spool: Path
    problem: Path
    faults: list[str] = field(default_factory=list)

    def start(self) -> subprocess.Popen[bytes]:
        """The worker; it must outlive the series."""
        with (self.spool.parent / "worker.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "evaluator", "worker", "--spool", str(self.spool), "--device", self.device], stderr=log
            )

    def judged(self, name: str, text: str, worker: subprocess.Popen[bytes]) -> Result:
        """The result of one candidate."""
        source = Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)
        options: dict[str, Any] = {"gate": False, "seeds": 2, "timeout_s": TIMEOUT_S}
        identity = f"hostile|{name}"
        job = Job(id=identity, kind=JobKind.CHECK, problem=str(self.problem), candidate=source, device=self.device, options=options)
        stem = hashlib.sha256(identity.encode()).hexdigest()[:40]
        queued = self.spool / "queue" / f"{stem}.json"
        queued.with_suffix(".new").write_text(dumps(job))
        queued.with_suffix(".new").rename(queued)
        answer = self.spool / "results" / f"{stem}.json"
        given_up = time.monotonic() + PATIENCE_S
        while not answer.exists():
            if worker.poll() is not None:
                raise SystemExit(f"the worker ended with {worker.returncode} at {name!r}")
            if time.monotonic() > given_up:
                raise SystemExit(f"no result for {name!r} within {PATIENCE_S:.0f} s")
            time.sleep(0.05)
        return decode(Result, json.loads(answer.read_text()))

    def leftovers(self, before: set[int]) -> list[str]:
        """Processes of a sandbox, and work folders, that are still there a while after the result."""
        until = time.monotonic() + GONE_WITHIN_S
        while True:
            left = [f"process {pid}" for pid in sorted(sandboxed() - before)]
            left += [str(path) for path in Path(tempfile.gettempdir()).glob("ratchet-job-*")]
            if not left or time.monotonic() > until:
                return left
            time.sleep(0.1)


def sandboxed() -> set[int]:
    """Processes in a process namespace below this one."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path("/proc", entry, "status").read_text()
        except OSError:
            continue
        line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
        if len(line.split()) > 2:
            found.add(int(entry))
    return found


def run(series: Series, chosen: list[tuple[str, str]], kept: dict[str, Any], out: Path) -> None:
    """Judge those that `kept` does not have yet."""
    before = sandboxed()
    worker = series.start()
    try:
        for number, (act, place) in enumerate(chosen, 1):
            name = f"{act}, at {place}"
            if name not in kept:
                kept[name] = _one(series, worker, name, candidate(act, place), ACTS[act][0], before)
                if number % HONEST_EVERY == 0:
                    kept[f"honest after {name}"] = _one(series, worker, f"honest {number}", HONEST, frozenset({Status.OK}), before)
                out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)


def _one(
    series: Series, worker: subprocess.Popen[bytes], name: str, text: str, deserved: frozenset[Status], before: set[int]
) -> dict[str, Any]:
    result = series.judged(name, text, worker)
    left = series.leftovers(before)
    right = result.status in deserved and not left
    entry = {"status": result.status.value, "right": right, "message": result.message[:160], "wall_s": result.wall_s, "left": left}
    if not right:
        entry["deserved"] = sorted(s.value for s in deserved)
    print(
        f"{'  ' if right else '! '}{name}: {result.status.value} ({result.wall_s:.1f} s) {result.message[:90]}", file=sys.stderr, flush=True
    )
    return entry


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--act", action="append", choices=tuple(ACTS))
    parser.add_argument("--place", action="append", choices=tuple(PLACES))
    options = parser.parse_args()
    chosen = [(act, place) for act in options.act or ACTS for place in options.place or PLACES]
    kept: dict[str, Any] = json.loads(options.out.read_text())["candidates"] if options.out.exists() else {}
    partial = options.out.with_suffix(".partial")
    if partial.exists():
        kept |= json.loads(partial.read_text())
    with tempfile.TemporaryDirectory(prefix="hostile-") as directory:
        problem = Path(directory, "problem.py")
        problem.write_text(PROBLEM)
        spool = Path(directory, "spool")
        (spool / "queue").mkdir(parents=True)
        run(Series(options.device, spool, problem), chosen, kept, partial)
    wrong = [name for name, entry in kept.items() if not entry["right"]]
    report = {
        "command": "python -m evidence.bench.hostile_candidates OUT.json",
        "device": options.device,
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()},
        "hostile": sum(not name.startswith("honest") for name in kept),
        "honest": sum(name.startswith("honest") for name in kept),
        "wrong": wrong,
        "candidates": kept,
    }
    options.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    partial.unlink(missing_ok=True)
    print(json.dumps({key: value for key, value in report.items() if key != "candidates"}, ensure_ascii=False))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
