"""Hands out the committed seccomp filter bytes of this architecture.

Invariant: the bytes come from `filters/` as committed; an architecture without them is an `EnvironmentFault`.
Not for: making filters (`filters/generate.py`).
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from evaluator.errors import EnvironmentFault

FILTERS = Path(__file__).parent / "filters"
ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}


def architecture() -> str:
    """Name of this machine's architecture as the filter files spell it."""
    machine = platform.machine().lower()
    return ALIASES.get(machine, machine)


def filter_path(name: str, machine: str | None = None) -> Path:
    """File of the filter `build`, `run` or `seal`; an EnvironmentFault where it is not there."""
    machine = machine or architecture()
    path = FILTERS / f"{name}-{machine}.bpf"
    if not path.is_file():
        raise EnvironmentFault(
            f"no system-call filter for this architecture ({machine})",
            "evaluation works on x86_64 and aarch64; filters are made with `python -m evaluator.sandbox.filters.generate`",
        )
    return path


def filter_fd(name: str) -> int:
    """Return a new descriptor at the start of the filter's bytes; the caller closes it."""
    return data_fd(filter_path(name).read_bytes(), name)


def data_fd(data: bytes, name: str) -> int:
    """Return a new anonymous descriptor that reads `data` from its start; the caller closes it."""
    descriptor = os.memfd_create(name)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
