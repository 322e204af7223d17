"""NVIDIA's compiler: what an extension's `.cu` sources are compiled with, for the device that is leased.

Flags are allowed one by one: what would run other programs, write elsewhere or read other files is refused.
Source: the flags are those of torch.utils.cpp_extension.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluator.errors import EnvironmentFault

COMMON = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
ALLOWED = re.compile(
    r"-O[0-3]?$|--?use_fast_math$|--?(lineinfo|generate-line-info|restrict|res-usage|extra-device-vectorization)$|-std=c\+\+(17|20)$"
    r"|-(arch|code)=[\w,]+$|-?-(gpu-architecture|gpu-code)=[\w,]+$|-?-gen(code|erate-code)=arch=compute_\w+,code=\[?[\w,]+\]?$"
    r"|--expt-(relaxed-constexpr|extended-lambda)$|--extended-lambda$|-?-maxrregcount=\d+$|--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)$"
    r"|-[DU]\w+(=[\w.\"'+-]*)?$|-w$|--?(threads|t|split-compile)=\d+$|--?diag-suppress=[\w,]+$|--?default-stream=(legacy|per-thread)$"
)
PTXAS = re.compile(
    r"-O[0-4]$|-v$|--?(verbose|warn-[\w-]+|allow-expensive-optimizations=\w+|maxrregcount=\d+|register-usage-level=\d+)$|-dlcm=\w+$"
)
WITH_VALUE = (
    "-gencode",
    "--generate-code",
    "-arch",
    "--gpu-architecture",
    "-code",
    "-maxrregcount",
    "--maxrregcount",
    "-std",
    "--threads",
    "-t",
)
PASSED_ON = {"-Xcompiler": "host", "--compiler-options": "host", "-Xptxas": "ptxas", "--ptxas-options": "ptxas"}
TARGETED = re.compile(r"-?-(arch|gencode|generate-code|gpu-architecture)")
OWN_INSTRUCTIONS = ((9, 0), (10, 0), (10, 3), (12, 0), (12, 1))
"""Capabilities with instructions that only code for exactly that device may use."""

USUAL = Path("/usr/local/cuda")

HostRefuses = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class Nvcc:
    """One installed toolkit, compiling for one capability."""

    root: Path
    version: str
    capability: tuple[int, int]

    @property
    def fingerprint(self) -> str:
        """What a compiled kernel depends on beyond its source."""
        return f"{self.version} {self.root} {self.target}"

    @property
    def target(self) -> str:
        """The device's code, with its own instructions where it has any."""
        number = f"{self.capability[0]}{self.capability[1]}" + ("a" if self.capability in OWN_INSTRUCTIONS else "")
        return f"-gencode=arch=compute_{number},code=sm_{number}"

    def include_flags(self) -> list[str]:
        """The toolkit's headers, for host sources too."""
        return ["-isystem", str(self.root / "include")]

    def link_flags(self) -> list[str]:
        """The toolkit's runtime and torch's side of it."""
        return [f"-L{self.root / 'lib64'}", "-lcudart", "-lc10_cuda", "-ltorch_cuda"]

    def command(
        self, *, source: str, output: str, name: str, includes: Sequence[str], flags: Sequence[str], standard: str, host: Path
    ) -> list[str]:
        """The compiler's argument vector for one source."""
        target = [] if any(TARGETED.match(flag) for flag in flags) else [self.target]
        options = [*COMMON, *target, f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H", f"-std={standard}"]
        compiler = [str(self.root / "bin" / "nvcc"), "-ccbin", str(host), "--compiler-options", "-fPIC"]
        return [*compiler, *includes, *options, *flags, "-c", source, "-o", output]

    def refused(self, flags: Sequence[str], host_refuses: HostRefuses) -> str | None:
        """The first flag that is refused, or None."""
        waiting = list(flags)
        while waiting:
            flag = waiting.pop(0)
            name, joined, value = flag.partition("=")
            if name in PASSED_ON:
                values = (value if joined else waiting.pop(0) if waiting else "").split(",")
                bad = host_refuses(values) if PASSED_ON[name] == "host" else next((v for v in values if not PTXAS.match(v)), None)
                if bad is not None:
                    return bad or flag
            elif flag in WITH_VALUE and waiting:
                if not ALLOWED.match(f"{flag}={waiting.pop(0)}"):
                    return flag
            elif not ALLOWED.match(flag):
                return flag
        return None


@cache
def find_nvcc(capability: tuple[int, int]) -> Nvcc:
    """The toolkit of CUDA_HOME, of PATH, or in its usual place; an EnvironmentFault where there is none."""
    for place in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), _on_path(), USUAL):
        if place and (Path(place) / "bin" / "nvcc").is_file():
            root = Path(place).resolve()
            return Nvcc(root, _version(root / "bin" / "nvcc"), capability)
    raise EnvironmentFault(
        "nvcc is not installed: candidates with CUDA sources cannot be built", "install the CUDA toolkit, or name it in CUDA_HOME"
    )


def _on_path() -> str | None:
    found = shutil.which("nvcc")
    return str(Path(found).resolve().parents[1]) if found else None


def _version(nvcc: Path) -> str:
    try:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFault(f"{nvcc} does not run: {error}", "install the CUDA toolkit again") from error
    return done.stdout.strip().splitlines()[-1]
