"""The precompiled header that makes a second compilation of torch/extension.h quick.

It is made in a sandbox of its own that holds no candidate text, from a short header that leaves out the C++ front end (torch::nn, data,
optim, jit): most candidates use none of it. The short header only ever saves time: where it could be the reason that a source does not
compile, torch's own is used, and that outcome counts.

Invariant: a header is keyed by toolchain and flags and never changed; the compiler itself refuses one that does not fit and reads the text.
Not for: compiling candidates (`compiler`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluator.build.cache import Cache, take_over
from evaluator.build.toolchain import Toolchain
from evaluator.sandbox.command import Bind, SandboxInfo
from evaluator.sandbox.limits import GIB, Limits
from evaluator.sandbox.process import SandboxProcess

INSIDE = "/ratchet/header"
SHORT = """\
#pragma once
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
WORD = re.compile(r"[A-Za-z_]\w*")
COMMON_FLAGS = ("-DTORCH_API_INCLUDE_EXTENSION_H", "-fPIC")
KEPT = 4
"""Precompiled headers on disk (about half a GiB each); the one unused longest goes first."""
HEADER_BYTES = 4 * GIB
TIMEOUT_S = 300.0
LIMITS = Limits(file_bytes=HEADER_BYTES, resident_bytes=8 * GIB, address_space_bytes=16 * GIB)


class Headers:
    """Short headers of one cache, with or without their precompiled form."""

    def __init__(self, cache: Cache, toolchain: Toolchain, sandbox: SandboxInfo, *, cores: Sequence[int] | None = None) -> None:
        self._cores = cores
        self._cache = cache
        self._toolchain = toolchain
        self._sandbox = sandbox

    def key(self, flags: Sequence[str]) -> str:
        """Name of the header for these flags."""
        text = "\0".join((self._toolchain.installed, SHORT, *COMMON_FLAGS, *flags))
        return hashlib.sha256(text.encode()).hexdigest()

    @contextmanager
    def short(self, flags: Sequence[str] | None, *, at_once: bool = False) -> Iterator[Path]:
        """A directory to mount at `INSIDE`: precompiled where it exists, or now where these flags were asked for before.

        `flags` None: never precompiled. `at_once`: precompile at the first request. The directory stays while the body runs.
        """
        if flags is None:
            yield self._plain()
            return
        key = self.key(flags)
        with self._cache.lock(f"header-{key}"):
            ready = self._cache.entry("headers", key) is not None
            if not ready and (at_once or self._asked_before(key)):
                ready = self._precompile(key, flags)
        if not ready:
            yield self._plain()
            return
        with self._cache.lock(f"header-{key}", shared=True):
            directory = self._cache.entry("headers", key)
            if directory is not None:
                os.utime(directory)
            yield directory or self._plain()

    def full_words(self) -> frozenset[str]:
        """Every identifier that torch's own header brings in: a name that is not among them is not missing because of the short one."""
        key = self.key(())
        directory = self._cache.entry("words", key)
        if directory is None:
            with self._cache.fresh() as fresh:
                (fresh / "words").write_text("\n".join(sorted(self._preprocess())), encoding="utf-8")
                directory = self._cache.publish(fresh, "words", key)
        return frozenset((directory / "words").read_text(encoding="utf-8").split("\n"))

    def _compiler(self, argv: Sequence[str], binds: Sequence[Bind]) -> SandboxProcess:
        return SandboxProcess.start(argv, sandbox=self._sandbox, profile="build", affinity=self._cores, limits=LIMITS, binds=binds)

    def _preprocess(self) -> set[str]:
        with self._cache.fresh() as fresh, self._cache.fresh() as out:
            (fresh / "full.cpp").write_text("#include <torch/extension.h>\n")
            (fresh / "full.cpp").chmod(0o644)
            out.chmod(0o777)
            standard = f"-std={self._toolchain.standard}"
            argv = [str(self._toolchain.compiler), "-E", "-dD", "-P", f"{INSIDE}/full.cpp", "-o", "/out/full.ii", standard, *COMMON_FLAGS]
            binds = [Bind(source=fresh, target=INSIDE), Bind(source=out, target="/out", writable=True)]
            argv += self._toolchain.include_flags()
            with self._compiler(argv, binds) as process:
                process.wait(TIMEOUT_S)
            take_over(out / "full.ii", fresh / "full.ii", cap_bytes=HEADER_BYTES)
            return set(WORD.findall((fresh / "full.ii").read_text(encoding="utf-8", errors="replace")))

    def _asked_before(self, key: str) -> bool:
        """Making it costs more than it saves the first time, so the first request is only noted."""
        note = self._cache.root / "locks" / f"header-{key}.asked"
        seen = note.exists()
        note.touch()
        return seen

    def _plain(self) -> Path:
        key = hashlib.sha256(SHORT.encode()).hexdigest()
        found = self._cache.entry("plain-headers", key)
        if found is not None:
            return found
        with self._cache.fresh() as fresh:
            _write_short(fresh)
            return self._cache.publish(fresh, "plain-headers", key)

    def _precompile(self, key: str, flags: Sequence[str]) -> bool:
        """Whether it worked; flags that the compiler refuses are told to the candidate by its own compilation."""
        self._make_room()
        with self._cache.fresh() as fresh, self._cache.fresh() as out:
            _write_short(fresh)
            out.chmod(0o777)
            source = f"{INSIDE}/torch/extension.h"
            compiler = str(self._toolchain.compiler)
            argv = [
                compiler,
                "-x",
                "c++-header",
                source,
                "-o",
                "/out/extension.h.gch",
                "-w",
                *COMMON_FLAGS,
                *self._toolchain.include_flags(),
                *flags,
            ]
            binds = [Bind(source=fresh, target=INSIDE), Bind(source=out, target="/out", writable=True)]
            with self._compiler(argv, binds) as process:
                ended = process.wait(TIMEOUT_S)
            if ended is None or not ended.ok:
                return False
            take_over(out / "extension.h.gch", fresh / "torch" / "extension.h.gch", cap_bytes=HEADER_BYTES)
            self._cache.publish(fresh, "headers", key)
            return True

    def _make_room(self) -> None:
        folder = self._cache.root / "headers"
        entries = sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime) if folder.is_dir() else []
        for old in entries[: max(0, len(entries) - KEPT + 1)]:
            with self._cache.try_lock(f"header-{old.name}") as free:
                if free:
                    self._cache.remove("headers", old.name)


def _write_short(directory: Path) -> None:
    (directory / "torch").mkdir()
    (directory / "torch").chmod(0o755)
    (directory / "torch" / "extension.h").write_text(SHORT)
    (directory / "torch" / "extension.h").chmod(0o644)
