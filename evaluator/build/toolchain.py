"""The C++ compiler of this machine and what torch asks of it.

Invariant: read from the installed files, without importing torch; the fingerprint changes whenever a source could compile differently.
Not for: running the compiler on candidate text (`compiler`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluator.errors import EnvironmentFault
from evaluator.sandbox.layout import HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What a C++ extension is compiled with."""

    compiler: Path
    version: str
    """First line of `--version`."""
    torch: Path
    """The installed torch package."""
    torch_version: str
    standard: str
    """As torch itself asks for: `c++20`."""
    installed: str
    """sha256 over all of it and the processor (for -march=native)."""
    fingerprint: str
    """sha256 over `installed` and this package's own code."""

    def include_flags(self) -> list[str]:
        """Directories of torch's and Python's headers."""
        include = self.torch / "include"
        directories = [include, include / "torch" / "csrc" / "api" / "include", Path(sysconfig.get_path("include", scheme="posix_prefix"))]
        return [part for directory in directories for part in ("-isystem", str(directory))]

    def link_flags(self) -> list[str]:
        """Torch's libraries."""
        return [f"-L{self.torch / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]


@cache
def toolchain() -> Toolchain:
    """Find the compiler (variable CXX, else c++ or g++) and torch; an EnvironmentFault where one is missing."""
    compiler = find_compiler()
    torch = torch_directory()
    version = compiler_version(compiler)
    standard = torch_standard((torch / "utils" / "cpp_extension.py").read_text(encoding="utf-8"))
    torch_version = importlib.metadata.version("torch")
    parts = (version, str(compiler), torch_version, str(torch), standard, platform.python_version(), sys.prefix, processor())
    installed = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return Toolchain(
        compiler=compiler,
        version=version,
        torch=torch,
        torch_version=torch_version,
        standard=standard,
        installed=installed,
        fingerprint=hashlib.sha256(f"{installed}\0{own_code()}".encode()).hexdigest(),
    )


def find_compiler() -> Path:
    """Path of the C++ compiler: one that a sandbox sees, so not one below a directory that is hidden in there."""
    hidden = ""
    for name in (os.environ.get("CXX", ""), "g++", "c++"):
        found = shutil.which(name) if name else None
        if found is not None and not any(Path(found).resolve().is_relative_to(directory) for directory in HIDDEN):
            return Path(found)
        hidden = hidden or found or ""
    where = f" ({hidden} is not visible in a sandbox)" if hidden else ""
    raise EnvironmentFault(f"no C++ compiler: candidates with C++ kernels cannot be built{where}", "install one: `apt-get install g++`")


def compiler_version(compiler: Path) -> str:
    """First line of what `--version` prints."""
    try:
        done = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=20, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFault(f"the C++ compiler {compiler} does not run: {error}", "install it again: `apt-get install g++`") from error
    return done.stdout.splitlines()[0].strip()


def torch_directory() -> Path:
    """Where torch is installed."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("torch is not installed in this environment", "install it: `python -m pip install torch`")
    return Path(spec.origin).parent


def torch_standard(cpp_extension: str) -> str:
    """The language standard in the text of torch/utils/cpp_extension.py: its headers need at least that."""
    found = re.findall(r"-std=(c\+\+\d\d)", cpp_extension)
    return max(found, default="c++17")


def processor() -> str:
    """Model and features of the processor, as far as they change generated code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    kept = [line for line in lines if re.match(r"(model name|flags|Features|CPU part)\s*:", line)]
    return "\n".join(sorted(set(kept)))


def own_code() -> str:
    """Hash of the code that decides how extensions are built."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "runner" / "extension.py"]
    return hashlib.sha256(b"".join(hashlib.sha256(f.read_bytes()).digest() for f in files)).hexdigest()
