"""From a source text to something that can be run: static gate, build, second scan.

Invariant: nothing of a source runs outside a sandbox, and what was refused here never reaches a device.
Not for: correctness or speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.build.builder import build
from evaluator.build.store import Build
from evaluator.devices.processor import building_cores
from evaluator.gate import GateReport, Severity, has_entry, imports_module, scan, scan_native, syntax_error
from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.setting import Setting
from evaluator.records import Source, Status
from problems.model import Problem

BUILD_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A source that passed the gate and was built."""

    source: str
    build: Build
    flags: tuple[str, ...]
    interpreted: bool
    """A source that imports Triton, on a CPU: it runs in Triton's interpreter and is never timed."""


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
    """Build a source that passed the gate, and scan what the build generated."""
    flags = scan_source(setting, source)
    setting.progress("build")
    built = build_source(setting, source.text, setting.problem, files=setting.candidate_files)
    if built.status is not Status.OK:
        raise Refusal(built.status, built.message, log=built.log)
    if gate_is_on(setting):
        for name, text in built.generated.items():
            _refuse(scan_native(text, profile=setting.job.profile), where=f"generated source {name}")
    interpreted = setting.device.interprets_triton and imports_module(source.text, "triton")
    return Prepared(source=source.text, build=built, flags=flags, interpreted=interpreted)


def build_source(setting: Setting, text: str, problem: Problem, *, files: Mapping[str, str] | None = None) -> Build:
    """Build a text as a candidate for a problem, or find what was built of it before."""
    return build(
        text,
        entry=problem.entry,
        cache=setting.cache,
        sandbox=setting.sandbox,
        timeout_s=BUILD_TIMEOUT_S,
        files=files,
        prepare_headers=True,
        cores=building_cores(setting.device.cores),
        kernels=setting.device.kernel_compiler(),
    )


def scan_source(setting: Setting, source: Source) -> tuple[str, ...]:
    """The static gate; raises its refusal, returns what it only flags."""
    setting.progress("gate", setting.job.profile)
    entry = setting.problem.entry
    try:
        present = has_entry(source.text, entry)
    except SyntaxError as error:
        raise Refusal(Status.COMPILE_ERROR, syntax_error(source.text) or str(error)) from error
    if not present:
        raise Refusal(Status.COMPILE_ERROR, f"the source defines no `{entry}`", hint=f"define `{entry}` at the top level")
    if not gate_is_on(setting):
        return ("static gate off",)
    report = scan(source.text, profile=setting.job.profile, entry=entry)
    _refuse(report, where="source")
    return tuple(f"gate: {f.rule}, line {f.line}" for f in report.findings)


def gate_is_on(setting: Setting) -> bool:
    """Off only in qualification, which must show what the protocol stops by itself."""
    return bool(setting.job.options.get("gate", True))


def _refuse(report: GateReport, *, where: str) -> None:
    if report.allowed:
        return
    refusing = [f for f in report.findings if f.severity is Severity.REFUSE]
    words = "; ".join(f"line {f.line}: {f.text}" for f in refusing[:3])
    raise Refusal(
        report.status, f"{where}, {words}" if where != "source" else words, hint=f"rule {refusing[0].rule} of the {report.profile} profile"
    )
