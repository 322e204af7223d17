"""What a measurement was made with: the evaluator's own code and everything below it that could change a figure.

Invariant: reading it needs no torch and no device; what is absent is said to be absent, never left out. Equal fingerprints mean equal code,
versions, kernel, processor and sandbox.
Not for: the state of the device during a measurement (that is a result's `context`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

from evaluator.build import toolchain
from evaluator.errors import EnvironmentFault
from evaluator.sandbox import probe

OWN_SUFFIXES = (".py", ".bpf", ".cpp", ".c", ".h", ".cu", ".json", ".yml")
REQUIRED = ("torch", "triton", "numpy", "scipy", "PyYAML")
OPTIONAL = ("kernelguard",)
ABSENT = "absent"


def fingerprint() -> dict[str, Any]:
    """Plain data; `sha256` is over all the rest."""
    return dict(_fingerprint())


@cache
def _fingerprint() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "evaluator": own_files(Path(__file__).parent),
        "python": platform.python_version(),
        **{name.lower(): installed(name) for name in REQUIRED},
        "compiler": _compiler(),
        "kernel": platform.release(),
        "device": processor_name(Path("/proc/cpuinfo")),
        "bwrap": _bwrap(),
        "optional": {name: installed(name) for name in OPTIONAL},
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), **facts}


def own_files(root: Path) -> str:
    """sha256 over the names and contents of the evaluator's own files, in order."""
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in OWN_SUFFIXES and "__pycache__" not in p.parts and p.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def installed(distribution: str) -> str:
    """Version of an installed distribution, or `absent`; nothing is imported."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT


def processor_name(cpuinfo: Path) -> str:
    """Model name of the processor as the kernel gives it, else the architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    return platform.machine()


def _compiler() -> str:
    try:
        return toolchain.compiler_version(toolchain.find_compiler())
    except EnvironmentFault:
        return ABSENT


def _bwrap() -> str:
    try:
        return probe.version(probe.find_bwrap())
    except EnvironmentFault:
        return ABSENT
