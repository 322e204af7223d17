"""What the judge asks of a device; everything else of the evaluator is the same for all.

Each kind has three parts: `device` (the judge's: which cores, which state), `trusted` (the trusted
process's: slots, flush, snapshots) and `inside` (mounted into every runner's sandbox).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from evaluator.devices.processor import Cores


class KernelCompiler(Protocol):
    """What compiles an extension's device sources (`.cu`) for one device."""

    @property
    def root(self) -> Path:
        """Where its toolkit is installed."""

    @property
    def fingerprint(self) -> str:
        """What a compiled kernel depends on beyond its source."""

    def include_flags(self) -> list[str]:
        """The toolkit's headers, for host sources too."""

    def link_flags(self) -> list[str]:
        """The toolkit's libraries."""

    def command(
        self, *, source: str, output: str, name: str, includes: Sequence[str], flags: Sequence[str], standard: str, host: Path
    ) -> list[str]:
        """The argument vector for one source."""

    def refused(self, flags: Sequence[str], host_refuses: Callable[[Sequence[str]], str | None]) -> str | None:
        """The first flag that a candidate may not ask for, or None."""


class Device(Protocol):
    """One device, as the judge sees it."""

    @property
    def name(self) -> str:
        """As a job names it: `cpu`, `cuda:0`."""

    @property
    def kind(self) -> str:
        """The package below `evaluator.devices` that knows it."""

    @property
    def lease(self) -> str:
        """What the lease is held on: the same for every name of one piece of hardware."""

    @property
    def cores(self) -> Cores:
        """Who runs where."""

    @property
    def slots(self) -> int:
        """Input slots before a reference time is known."""

    @property
    def stands_still(self) -> bool:
        """Whether a runner is stopped between its calls; otherwise it spins, and only rests while others have their turn."""

    @property
    def interprets_triton(self) -> bool:
        """Whether Triton sources run in its interpreter here, checked and never timed."""

    @property
    def reserves_addresses(self) -> bool:
        """Whether its driver reserves far more address space than it uses, so that no limit on it can be set."""

    @property
    def nodes(self) -> tuple[Path, ...]:
        """Device files that a runner's sandbox sees."""

    @property
    def environment(self) -> dict[str, str]:
        """What a runner's sandbox adds to its environment."""

    def kernel_compiler(self) -> KernelCompiler | None:
        """What compiles its device sources; None where it has none. EnvironmentFault where that is not installed."""

    def mounts(self, cache: Path) -> tuple[tuple[Path, str], ...]:
        """Files of its own that every runner's sandbox sees: (on the host, inside); made below `cache` where they are not there."""

    def slots_for(self, reference_us: float, slot_bytes: int) -> int:
        """How many input slots a call of this length needs, so that an early start costs more than it gains."""

    def context(self) -> dict[str, Any]:
        """State that belongs into every record."""
