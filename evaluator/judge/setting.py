"""What one job runs on: the device, the sandbox, the problem's files and a place to work.

Owns every process and directory of a job and ends them all, whatever happens.
Not for: the order of a job's steps.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from evaluator.devices.device import Device
from evaluator.devices.lease import DeviceLease
from evaluator.gate import imports_module
from evaluator.judge.reading import ShownMemory, StoppedMemory
from evaluator.judge.runner import Runner
from evaluator.judge.spares import EXTENSIONS_INSIDE, FILES_INSIDE, Spares
from evaluator.judge.trial import Bench
from evaluator.judge.trusted import TrustedProcess
from evaluator.judge.workplace import workplace
from evaluator.records import Job, Progress
from evaluator.sandbox.command import Bind, Profile, SandboxInfo
from evaluator.sandbox.layout import current as current_layout
from evaluator.sandbox.limits import Limits
from evaluator.sandbox.process import SandboxProcess
from problems.model import Problem
from problems.workload import open_workload

if TYPE_CHECKING:
    from evaluator.build.store import Build
    from evaluator.judge.timing import CaseClock

OURS = Path(__file__).resolve().parents[1]
OURS_INSIDE = "/ratchet/lib/evaluator"
TIMEOUT_S = 60.0
CANDIDATE_FILE = "candidate.py"
RUNNER_ENVIRONMENT = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
"""The same for every runner. Freed memory is kept by the process: otherwise glibc's moving thresholds decide whether an
output's pages are faulted in anew at every call, which can be worth more than the kernel under test."""


def runner_limits(device: Device) -> Limits:
    """Two thirds of the machine's memory at most, so that a hungry candidate never takes the judge down."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = Limits(resident_bytes=min(16 << 30, total * 2 // 3))
    return replace(limits, address_space_bytes=None) if device.reserves_addresses else limits


@dataclass(slots=True)
class Setting:
    """The surroundings of one job."""

    job: Job
    problem: Problem
    device: Device
    sandbox: SandboxInfo
    cache: Path
    report: Callable[[Progress], None]
    stack: ExitStack = field(default_factory=ExitStack)
    work: Path = field(init=False)
    device_s: float = 0.0
    """Seconds from the first runner on: how long the device was held."""
    _device_since: float | None = None
    _trusted: TrustedProcess | None = None
    _bench: Bench | None = None
    _reference: Runner | None = None
    _spares: Spares | None = None
    slots: dict[str, int] = field(default_factory=dict)
    """Input slots of a timed case, once a reference time is known."""
    calibration: tuple[Runner, dict[str, CaseClock]] | None = None
    """The reference's runner and what it gave before any candidate existed."""

    def __post_init__(self) -> None:
        self.work = self.stack.enter_context(workplace())

    def __enter__(self) -> Setting:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stack.close()
        if self._device_since is not None:
            self.device_s = time.monotonic() - self._device_since

    @property
    def timeout_s(self) -> float:
        """For one untimed operation or one call."""
        return float(self.job.options.get("timeout_s", TIMEOUT_S))

    def progress(self, step: str, detail: str = "", done: int | None = None, total: int | None = None) -> None:
        """Say which step the job is in."""
        self.report(Progress(job=self.job.id, step=step, detail=detail, done=done, total=total))

    def another(self, job: Job, problem: Problem) -> Setting:
        """A fresh setting for another job on the same machine; its progress is not reported."""
        return Setting(job=job, problem=problem, device=self.device, sandbox=self.sandbox, cache=self.cache, report=lambda _: None)

    def cases(self) -> list[str]:
        """Names of the cases to run."""
        names = [case.name for case in self.problem.cases(self.job.device)]
        return [n for n in names if self.job.cases is None or n in self.job.cases]

    def start_trusted(self) -> TrustedProcess:
        """The trusted process of the job, started once; it is left to start while other work goes on."""
        if self._trusted is None:
            self._trusted = TrustedProcess(self.device)
            self.stack.callback(self._trusted.close)
        return self._trusted

    def bench(self) -> Bench:
        """The trusted process with the problem loaded, and a way to read what runners answer."""
        if self._bench is None:
            trusted = self.start_trusted()
            trusted.open(self.problem.key, self.problem.sha256, self.job.device)
            reading = (StoppedMemory if self.device.stands_still else ShownMemory)(trusted)
            self.stack.callback(reading.close)
            self._bench = Bench(trusted, reading, slots=self.device.slots, spins=not self.device.stands_still)
        return self._bench

    @property
    def candidate_files(self) -> dict[str, str]:
        """What a candidate may import from beside it: never the reference."""
        return open_workload(self.problem, self.job.device).candidate_files()

    def reference(self) -> Runner:
        """The job's first reference runner, started once."""
        if self._reference is None:
            self._reference = self.reference_runner()
        return self._reference

    def reference_runner(self, *, name: str = "reference", profile: Profile = "run", compiled: bool = False) -> Runner:
        """The reference in a sandbox of its own: the same program as a candidate's."""
        spares = self.spares()
        runner = Runner(name, spares.take(profile), spares.settle, timeout_s=self.timeout_s, reference=True, compiled=compiled)
        self.stack.callback(runner.close)
        runner.will_load(entry=self.problem.reference_entry, style=self.style)
        return runner

    def candidate_runner(self, build: Build, source: str, *, name: str, blank: bool = False, charged: bool = True) -> Runner:
        """A candidate in its sandbox. The caller closes it, or the job's end does."""
        spares = self.spares()
        spare = spares.take()
        runner = Runner(name, spare, spares.settle, timeout_s=self.timeout_s, charged=charged)
        self.stack.callback(runner.close)
        for file, text in {**self.candidate_files, CANDIDATE_FILE: source}.items():
            (spare.files / file).write_text(text, encoding="utf-8")
        if build.directory is not None:
            shutil.copytree(build.directory, spare.extensions, dirs_exist_ok=True)
            spare.extensions.chmod(0o755)
        runner.load(
            path=f"{FILES_INSIDE}/{CANDIDATE_FILE}",
            entry=self.problem.entry,
            style=self.style,
            extensions=EXTENSIONS_INSIDE if build.directory is not None else None,
            triton=self.device.interprets_triton and imports_module(source, "triton"),
            blank=blank,
        )
        return runner

    @property
    def style(self) -> str:
        """How the problem is called: `module` (forward(*inputs)) or `data` (one nested argument)."""
        return "module" if self.problem.format == "kernelbench" else "data"

    @property
    def threads(self) -> int:
        """Threads of every runner: one per measuring core."""
        return len(self.device.cores.runners)

    @property
    def environment(self) -> dict[str, str]:
        """What a runner's sandbox adds to its environment."""
        return {**RUNNER_ENVIRONMENT, **self.device.environment, "OMP_NUM_THREADS": str(self.threads)}

    def spares(self) -> Spares:
        """The runners that are started ahead. The device's lease is taken with the first and kept until the job's end."""
        if self._spares is None:
            waiting = "another measurement holds the device"
            self.stack.enter_context(DeviceLease(self.device.lease, waiting=lambda: self.progress("lease", waiting)))
            self._device_since = time.monotonic()
            self._spares = Spares(self._launch, self.device, self.work)
            self.stack.callback(self._spares.close)
        return self._spares

    def _mounts(self) -> list[Bind]:
        return [Bind(source=source, target=target) for source, target in self.device.mounts(self.cache)]

    @property
    def _shown(self) -> tuple[str, str]:
        """What of the evaluator a runner's sandbox sees."""
        return "runner", f"devices/{self.device.kind}/inside"

    def _launch(self, profile: Profile, descriptors: list[int], binds: list[Bind]) -> SandboxProcess:
        interpreter = [str(current_layout().python)] if profile == "build" else []
        return SandboxProcess.start(
            [*interpreter, f"{OURS_INSIDE}/runner/__main__.py", self.device.kind, *map(str, descriptors)],
            sandbox=self.sandbox,
            profile=profile,
            affinity=(*self.device.cores.judge, *self.device.cores.runners),
            limits=runner_limits(self.device),
            pass_fds=descriptors,
            binds=[*(Bind(source=OURS / part, target=f"{OURS_INSIDE}/{part}") for part in self._shown), *self._mounts(), *binds],
            devices=self.device.nodes,
            env=self.environment,
        )
