"""Compiles and links one extension request in sandboxes that hold no candidate Python.

Invariant: the compiler sees the sources and headers of the request, the system's and torch's headers, and one empty output directory; the
library is taken over as a plain file of bounded size.
Not for: importing what was built.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator.build import flags as flag_rules
from evaluator.build import headers as short_headers
from evaluator.build import store
from evaluator.build.cache import Cache, NotRegular, take_over
from evaluator.build.headers import Headers
from evaluator.build.toolchain import Toolchain
from evaluator.devices.device import KernelCompiler
from evaluator.sandbox.command import Bind, SandboxInfo
from evaluator.sandbox.limits import GIB, MIB, Limits
from evaluator.sandbox.process import SandboxProcess

DEVICE_SOURCES = (".cu",)
SOURCES, HEADERS, OUT = "/sources", "/headers", "/out"
LIBRARY_BYTES = 256 * MIB
LOG_LIMIT = 16_000
LIMITS = Limits(file_bytes=GIB, resident_bytes=8 * GIB, address_space_bytes=16 * GIB, output_bytes=64 * 1024)
MISSING = re.compile(
    r"error: .*(has not been declared|was not declared|is not a member of|does not name a|incomplete type|no member named|has no member"
    r"|no matching|not a template|is not a class|expected type-specifier|expected class-name)|fatal error: .*: No such file"
)
"""Errors that the short header could be the cause of."""
QUOTED = re.compile("\u2018([^\u2019]*)\u2019")
PYBIND_MODULE = re.compile(r"PYBIND11_MODULE|PyInit_")


class CompileError(Exception):
    """The request does not compile or link; the message is the compiler's text."""


class CompileTimeout(Exception):
    """The compiler did not finish within the deadline."""


class Compiler:
    """Compiles requests into libraries."""

    def __init__(
        self,
        *,
        toolchain: Toolchain,
        sandbox: SandboxInfo,
        cache: Cache,
        prepare_headers: bool = False,
        cores: Sequence[int] | None = None,
        kernels: KernelCompiler | None = None,
    ) -> None:
        self._kernels = kernels
        self._cores = cores
        self._toolchain = toolchain
        self._sandbox = sandbox
        self._cache = cache
        self._headers = Headers(cache, toolchain, sandbox, cores=cores)
        self._prepare_headers = prepare_headers

    def compile_once(self, request: dict[str, Any], key: str, library: Path, *, deadline: float) -> str:
        """Like `compile`, but takes the library from the cache where the same request was or is being compiled."""
        device = self._kernels.fingerprint if self._kernels else ""
        kept = hashlib.sha256(f"{self._toolchain.fingerprint}\0{device}\0{key}".encode()).hexdigest()
        with self._cache.lock(f"library-{kept}"):
            header = store.find_library(self._cache, kept, library)
            if header is None:
                header = self.compile(request, library, deadline=deadline)
                store.keep_library(self._cache, kept, library, header)
        return header

    def compile(self, request: dict[str, Any], library: Path, *, deadline: float) -> str:
        """Compile `request` into the new file `library`; raises CompileError or CompileTimeout (`deadline` on the monotonic clock).

        Returns which form of torch/extension.h was used: `precompiled`, `short` or `full`.
        """
        refuse(request, self._kernels)
        with self._cache.fresh() as work, self._cache.fresh() as out:
            out.chmod(0o777)
            binds = [*write_sources(request, work), Bind(source=out, target=OUT, writable=True), *self._toolkit()]
            form = self._objects(request, binds, deadline)
            objects = [f"{OUT}/{source['file']}.o" for source in request["sources"]]
            link = [
                str(self._toolchain.compiler),
                "-shared",
                *objects,
                "-o",
                f"{OUT}/library.so",
                *request["ldflags"],
                *self._toolchain.link_flags(),
                *(self._kernels.link_flags() if self._kernels else []),
            ]
            self._run(link, binds, deadline)
            try:
                take_over(out / "library.so", library, cap_bytes=LIBRARY_BYTES)
            except NotRegular as error:
                raise CompileError(str(error)) from error
        return form

    def _objects(self, request: dict[str, Any], binds: Sequence[Bind], deadline: float) -> str:
        fitting = flag_rules.header_flags(request["cflags"], self._toolchain.standard)
        with self._headers.short(fitting, at_once=self._prepare_headers) as directory:
            try:
                self._compile_all(request, [*binds, Bind(source=directory, target=short_headers.INSIDE)], deadline, short=True)
            except CompileError as error:
                if not self._short_to_blame(str(error)):
                    raise
            else:
                return "precompiled" if (directory / "torch" / "extension.h.gch").exists() else "short"
        self._compile_all(request, binds, deadline, short=False)
        return "full"

    def _short_to_blame(self, text: str) -> bool:
        """Whether a name that the compiler misses is one that torch's own header has."""
        missing = [line for line in text.splitlines() if MISSING.search(line)]
        if not missing:
            return False
        words = self._headers.full_words()
        named = [set(short_headers.WORD.findall(quoted)) for line in missing for quoted in QUOTED.findall(line)[:1]]
        return len(named) < len(missing) or any(names <= words for names in named)

    def _compile_all(self, request: dict[str, Any], binds: Sequence[Bind], deadline: float, *, short: bool) -> None:
        for source in request["sources"]:
            self._run(self.command(request, source["file"], short=short), binds, deadline)

    def command(self, request: dict[str, Any], file: str, *, short: bool) -> list[str]:
        """The compiler's argument vector for one source."""
        shipped = {directory: f"{HEADERS}/{index}" for index, directory in enumerate(request["headers"])}
        asked = [f"-I{shipped.get(directory, directory)}" for directory in request["include_paths"]]
        if self._kernels is not None and file.endswith(DEVICE_SOURCES):
            return self._device_command(self._kernels, request, file, [*(f"-I{directory}" for directory in shipped.values()), *asked])
        standard = [f"-std={self._toolchain.standard}", *flag_rules.DEFAULT]
        includes = [f"-I{short_headers.INSIDE}"] if short else []
        includes += [part for directory in shipped.values() for part in ("-iquote", directory)] + asked
        name = [f"-DTORCH_EXTENSION_NAME={request['name']}"]
        compile_one = ["-c", f"{SOURCES}/{file}", "-o", f"{OUT}/{file}.o", "-fdiagnostics-color=never"]
        toolkit = self._kernels.include_flags() if self._kernels else []
        common = [*short_headers.COMMON_FLAGS, *self._toolchain.include_flags(), *toolkit, *standard]
        return [str(self._toolchain.compiler), *name, *includes, *common, *request["cflags"], *compile_one]

    def _device_command(self, kernels: KernelCompiler, request: dict[str, Any], file: str, includes: list[str]) -> list[str]:
        return kernels.command(
            source=f"{SOURCES}/{file}",
            output=f"{OUT}/{file}.o",
            name=request["name"],
            includes=[*includes, *self._toolchain.include_flags(), *kernels.include_flags()],
            flags=request["cuda_cflags"],
            standard=self._toolchain.standard,
            host=self._toolchain.compiler,
        )

    def _toolkit(self) -> list[Bind]:
        """The device toolkit, where it does not lie among the system's directories."""
        if self._kernels is None or self._kernels.root.is_relative_to("/usr"):
            return []
        return [Bind(source=self._kernels.root, target=str(self._kernels.root))]

    def _run(self, argv: Sequence[str], binds: Sequence[Bind], deadline: float) -> None:
        with SandboxProcess.start(
            argv, sandbox=self._sandbox, profile="build", affinity=self._cores, limits=LIMITS, binds=binds
        ) as process:
            ended = process.wait(max(0.0, deadline - time.monotonic()))
            if ended is None:
                raise CompileTimeout("the compiler did not finish in time")
            if not ended.ok:
                text = process.stderr.replace(f"{SOURCES}/", "").strip()
                raise CompileError((text or f"the compiler {ended.words()}")[:LOG_LIMIT])


def refuse(request: dict[str, Any], kernels: KernelCompiler | None = None) -> None:
    """Raise CompileError for what is not compiled at all."""
    flag = flag_rules.refused(request["cflags"], request["ldflags"])
    if flag is None and kernels is not None:
        flag = kernels.refused(request["cuda_cflags"], lambda flags: flag_rules.refused(flags, []))
    if flag is not None:
        raise CompileError(f"the flag {flag!r} is not allowed for an extension")
    if request["with_cuda"] and kernels is None:
        raise CompileError(
            "this extension has CUDA sources, and the device is a CPU: write the kernel in C++ (cpp_sources) or choose a CUDA device"
        )
    if request["python_module"] and not any(PYBIND_MODULE.search(source["text"]) for source in request["sources"]):
        raise CompileError(
            "the extension defines no Python module: pass `functions=[...]` or write PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)"
        )


def write_sources(request: dict[str, Any], work: Path) -> list[Bind]:
    """Write the request's texts below `work` and return the mounts that show them to the compiler."""
    sources = work / "sources"
    _write(sources, {source["file"]: source["text"] for source in request["sources"]})
    binds = [Bind(source=sources, target=SOURCES)]
    for index, files in enumerate(request["headers"].values()):
        _write(work / f"headers-{index}", files)
        binds.append(Bind(source=work / f"headers-{index}", target=f"{HEADERS}/{index}"))
    return binds


def _write(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir()
    directory.chmod(0o755)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
        path.chmod(0o644)
