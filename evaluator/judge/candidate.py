"""From a source text to something that can be run: limits, static gate, build, second scan.

Invariant: nothing of a source runs outside a sandbox, and what was refused here never reaches a device.
Not for: correctness or speed.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.build.builder import Build, build
from evaluator.gate import has_entry, scan, scan_native
from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.setting import Setting
from evaluator.records import Source, Status

BUILD_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A source that passed the gate and was built."""

    source: str
    build: Build
    flags: tuple[str, ...]
    interpreted: bool
    """A Triton source on a CPU: it runs in Triton's interpreter and is never timed."""


def prepare_candidate(setting: Setting) -> Prepared:
    """Prepare the job's candidate; raises its refusal."""
    assert setting.job.candidate is not None
    return prepare_source(setting, setting.job.candidate)


def prepare_champion(setting: Setting) -> Prepared | None:
    """Prepare the job's champion; None where it is the reference. Its failures are not the candidate's."""
    if setting.job.champion is None:
        return None
    try:
        return prepare_source(setting, setting.job.champion)
    except Refusal as refusal:
        raise Infrastructure(f"the champion no longer builds: {refusal.message}", log=refusal.log) from refusal


def prepare_source(setting: Setting, source: Source) -> Prepared:
    """Scan and build one source."""
    flags = _scan(setting, source)
    setting.progress("build")
    built = build(source.text, entry=setting.problem.entry, cache=setting.cache, sandbox=setting.sandbox, timeout_s=BUILD_TIMEOUT_S)
    if built.status is not Status.OK:
        raise Refusal(built.status, built.message, log=built.log)
    if _gate_is_on(setting):
        for name, text in built.generated.items():
            _refuse(scan_native(text, profile=setting.job.profile), where=f"generated source {name}")
    return Prepared(source=source.text, build=built, flags=flags, interpreted="triton" in built.imports)


def _scan(setting: Setting, source: Source) -> tuple[str, ...]:
    setting.progress("gate", setting.job.profile)
    entry = setting.problem.entry
    try:
        present = has_entry(source.text, entry)
    except SyntaxError as error:
        raise Refusal(Status.COMPILE_ERROR, f"line {error.lineno}: {error.msg}") from error
    if not present:
        raise Refusal(Status.COMPILE_ERROR, f"the source defines no `{entry}`", hint=f"define `{entry}` at the top level")
    if not _gate_is_on(setting):
        return ("static gate off",)
    report = scan(source.text, profile=setting.job.profile, entry=entry)
    _refuse(report, where="source")
    return tuple(f"gate: {f.rule} (line {f.line})" for f in report.findings)


def _gate_is_on(setting: Setting) -> bool:
    """Off only in qualification, which must show what the protocol stops by itself."""
    return bool(setting.job.options.get("gate", True))
