"""Resource limits of one sandboxed process.

Invariant: limits are lowered inside the sandbox before any candidate code (soft = hard), so they cannot be raised again;
the affinity is inherited from what the guardian starts, and the filters refuse to change it.
Not for: wall-clock deadlines (`SandboxProcess.wait`).
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use. None leaves a figure at the machine's own."""

    address_space_bytes: int | None = 32 * GIB
    """Per process; leave None where a device driver reserves address space."""
    resident_bytes: int | None = 16 * GIB
    """Sum over the sandbox, watched from outside; beyond it the sandbox is killed."""
    file_bytes: int = 2 * GIB
    """Largest single file."""
    scratch_bytes: int = GIB
    """Size of the only writable directory."""
    open_files: int = 1024
    processes: int = 512
    """Processes and threads."""
    stack_bytes: int = 64 * MIB
    output_bytes: int = MIB
    """Kept of stdout and of stderr, half from the start and half from the end; the rest is read and dropped."""

    def resources(self) -> dict[str, int]:
        """Limits by the name of their `resource` constant, as the launcher applies them."""
        limits = {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_STACK": self.stack_bytes,
        }
        if self.address_space_bytes is not None:
            limits["RLIMIT_AS"] = self.address_space_bytes
        return limits
