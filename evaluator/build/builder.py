"""Builds one source: imports it in a sandbox, compiles what it asks for in others, keeps the result in the cache.

Invariant: a Build with status OK has a directory written by the judge alone, holding one library per request, named by the request's hash.
Only such a build is cached. What goes wrong with the candidate is a status; what goes wrong with the machine is an EnvironmentFault.
Not for: the static gate (the caller scans `generated`) or correctness.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.build import flags as flag_rules
from evaluator.build import store
from evaluator.build.cache import Cache
from evaluator.build.compiler import LOG_LIMIT, CompileError, Compiler, CompileTimeout
from evaluator.build.conversation import Conversation, Ended, Malformed, Silence
from evaluator.build.headers import Headers
from evaluator.build.request import BadRequest, checked, key_of
from evaluator.build.store import Build, Extension
from evaluator.build.toolchain import toolchain
from evaluator.devices.device import KernelCompiler
from evaluator.records import Status
from evaluator.sandbox.command import Bind, SandboxInfo
from evaluator.sandbox.limits import GIB, Limits
from evaluator.sandbox.output import sanitise
from evaluator.sandbox.process import SandboxProcess

IMPORTER = Path(__file__).with_name("importer.py")
STAND_IN = Path(__file__).parents[1] / "runner" / "extension.py"
INSIDE, CANDIDATE, LIBRARIES = "/ratchet/builder", "/candidate", "/extensions"
EXTENSIONS = 32
"""At most so many requests in one build."""
LIMITS = Limits(resident_bytes=8 * GIB, output_bytes=64 * 1024)
ENVIRONMENT = {"TRITON_INTERPRET": "1"}
"""As in the runner: without a device, Triton must not look for one at import."""

__all__ = ["Build", "Extension", "build", "precompile"]


def build(
    source: str,
    *,
    entry: str,
    cache: Path,
    sandbox: SandboxInfo,
    timeout_s: float,
    files: Mapping[str, str] | None = None,
    prepare_headers: bool = False,
    cores: Sequence[int] | None = None,
    kernels: KernelCompiler | None = None,
) -> Build:
    """Build `source`, or return what the cache holds for the same source, files and toolchain.

    `entry` must exist after the import (`ModelNew`, `custom_kernel`). `files` (name, text) are modules that lie beside the candidate.
    `cores` are those that compilers may use; None: the caller's. `kernels` compiles device sources; None: there is no such device.
    `prepare_headers` precompiles torch's headers at the first use of a set of flags instead of the second.
    """
    started = time.monotonic()
    place = Cache(cache)
    key = build_key(source, entry, files or {}, kernels)
    found = store.find(place, key)
    if found is not None:
        return found
    compiler = Compiler(toolchain=toolchain(), sandbox=sandbox, cache=place, prepare_headers=prepare_headers, cores=cores, kernels=kernels)
    with place.fresh() as fresh, place.fresh() as seen:
        session = _Session(compiler, fresh, deadline=started + timeout_s, cores=cores)
        _write_candidate(seen, source, files or {})
        outcome = session.run(seen, entry, sandbox)
        if outcome.status is not Status.OK:
            return outcome.but(seconds=time.monotonic() - started)
        return store.keep(place, key, fresh, outcome.but(seconds=time.monotonic() - started))


def precompile(flags: Sequence[str], *, cache: Path, sandbox: SandboxInfo, cores: Sequence[int] | None = None) -> None:
    """Precompile torch's headers for these flags, so that builds which want them need not do it one after another."""
    headers = Headers(Cache(cache), toolchain(), sandbox, cores=cores)
    with headers.short(flag_rules.header_flags(flags, toolchain().standard), at_once=True):
        pass


def build_key(source: str, entry: str, files: Mapping[str, str], kernels: KernelCompiler | None = None) -> str:
    """Name of a build in the cache."""
    parts = [
        toolchain().fingerprint,
        kernels.fingerprint if kernels else "",
        entry,
        source,
        *(part for item in sorted(files.items()) for part in item),
    ]
    return hashlib.sha256(b"\0".join(hashlib.sha256(p.encode("utf-8", "surrogatepass")).digest() for p in parts)).hexdigest()


class _Session:
    """One run of the builder sandbox."""

    def __init__(self, compiler: Compiler, directory: Path, *, deadline: float, cores: Sequence[int] | None) -> None:
        self._cores = cores
        self._compiler = compiler
        self._directory = directory
        self._deadline = deadline
        self._extensions: dict[str, Extension] = {}
        self._generated: dict[str, str] = {}
        self._failures: list[str] = []

    def run(self, candidate: Path, entry: str, sandbox: SandboxInfo) -> Build:
        """Import the candidate and serve its requests until it is done or its time is up."""
        binds = [
            Bind(source=IMPORTER, target=f"{INSIDE}/importer.py"),
            Bind(source=STAND_IN, target=f"{INSIDE}/extension.py"),
            Bind(source=candidate, target=CANDIDATE),
            Bind(source=self._directory, target=LIBRARIES),
        ]
        with Conversation() as talk:
            argv = [f"{INSIDE}/importer.py", *map(str, talk.theirs), f"{CANDIDATE}/candidate.py", entry, LIBRARIES]
            with SandboxProcess.start(
                argv,
                sandbox=sandbox,
                profile="run",
                affinity=self._cores,
                limits=LIMITS,
                binds=binds,
                pass_fds=talk.theirs,
                env=ENVIRONMENT,
            ) as process:
                talk.handed_over()
                try:
                    return self._serve(talk, entry)
                except Ended:
                    ended = process.wait(10)
                    how = "ended its process" if ended is None or ended.reason == "exit" else ended.words()
                    return self._failed(Status.RUNTIME_ERROR, f"the import {how}", process.stderr)
                except (Silence, CompileTimeout):
                    return self._failed(Status.TIMEOUT, "the build did not finish in time", process.stderr)
                except (Malformed, BadRequest) as error:
                    return self._failed(Status.RUNTIME_ERROR, f"the builder sandbox sent {error}", process.stderr)

    def _serve(self, talk: Conversation, entry: str) -> Build:
        while True:
            message = talk.hear(self._deadline)
            if "done" in message:
                return self._done(message["done"], entry)
            request = checked(message.get("extension"))
            if len(self._extensions) + len(self._failures) >= EXTENSIONS:
                talk.say({"ok": False, "text": f"more than {EXTENSIONS} extensions"})
                continue
            talk.say(self._compile(request))

    def _compile(self, request: dict[str, Any]) -> dict[str, Any]:
        key = key_of(request)
        if key in self._extensions:
            return {"ok": True}
        for source in request["sources"]:
            self._generated[f"{request['name']}/{source['file']}"] = source["text"]
        for directory, headers in request["headers"].items():
            self._generated.update({f"{request['name']}{directory}/{name}": text for name, text in headers.items()})
        library = self._directory / f"{key}.so"
        started = time.monotonic()
        try:
            header = self._compiler.compile_once(request, key, library, deadline=self._deadline)
        except CompileError as error:
            library.unlink(missing_ok=True)
            self._failures.append(str(error))
            return {"ok": False, "text": str(error)}
        self._extensions[key] = Extension(
            name=request["name"],
            key=key,
            sha256=store.file_hash(library),
            cflags=tuple(request["cflags"]),
            ldflags=tuple(request["ldflags"]),
            header=header,
            seconds=time.monotonic() - started,
        )
        return {"ok": True}

    def _done(self, done: Any, entry: str) -> Build:
        if not isinstance(done, dict) or not isinstance(done.get("text"), str) or not isinstance(done.get("modules"), list):
            raise Malformed("a last word that is none")
        text = sanitise(done["text"])[:LOG_LIMIT]
        if done.get("kind") == "extension":
            return self._failed(Status.COMPILE_ERROR, first_error(text), text)
        if done.get("kind") == "syntax":
            return self._failed(Status.COMPILE_ERROR, _last_line(text), text)
        if done.get("kind") != "ok":
            return self._failed(Status.RUNTIME_ERROR, f"the import raised {_last_line(text)}", text)
        if done.get("entry") is not True:
            return self._failed(Status.COMPILE_ERROR, f"the source defines no `{entry}`", "")
        modules = tuple(str(m)[:100] for m in done["modules"][:500])
        return self._build(Status.OK, "", "\n\n".join(self._failures)[:LOG_LIMIT], modules)

    def _failed(self, status: Status, message: str, log: str) -> Build:
        return self._build(status, message[:500], log[-LOG_LIMIT:] if status is Status.RUNTIME_ERROR else log[:LOG_LIMIT], ())

    def _build(self, status: Status, message: str, log: str, modules: tuple[str, ...]) -> Build:
        return Build(
            status=status,
            message=message,
            log=log,
            directory=None,
            extensions=tuple(self._extensions.values()),
            generated=dict(self._generated),
            imports=modules,
        )


def first_error(text: str) -> str:
    """The line of a compiler's output that says what is wrong first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line or "undefined reference" in line or "undefined symbol" in line]
    return (telling or lines[1:] or lines or ["the extension does not compile"])[0][:300]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "an exception without a text"


def _write_candidate(directory: Path, source: str, files: Mapping[str, str]) -> None:
    for name, text in {**files, "candidate.py": source}.items():
        path = directory / Path(name).name
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        path.chmod(0o644)
