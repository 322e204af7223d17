"""The static gate: one scan of one source under one profile.

Invariant: pure apart from the optional advisory scanner; the source is parsed, never imported or run.
Native code is looked for in every string of the source, and once more in the sources that the build
generates (`scan_native`), which catches what strings only become when they are put together.
Not for: a missing entry point (`has_entry`) or any guarantee (the clock protocol and the sandbox).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evaluator.gate.advisory import advise
from evaluator.gate.allowlist import Allowlist
from evaluator.gate.names import Names
from evaluator.gate.native import names_in, scan_string, scan_text
from evaluator.gate.policy import Policy, check_policy
from evaluator.gate.profiles import load_profile
from evaluator.gate.python import PythonScan
from evaluator.gate.report import NO_CUSTOM_KERNEL, SYNTAX, Advisory, Finding, GateReport, Severity, finding, report
from evaluator.gate.source import describe, parse

_NATIVE_MARKS = ("#include", "#define", "#pragma", "%:define", "__global__", "__device__", 'extern "C"', "asm(", "__asm")


def scan(source: str, *, profile: str, entry: str, policy: Policy | None = None, advisory: str = "flag") -> GateReport:
    """Scan a candidate. `entry` is named in messages; `advisory` is off, flag or reject."""
    rules = load_profile(profile)
    try:
        tree = parse(source)
    except SyntaxError as error:
        broken = finding(SYNTAX, error.lineno or 1, describe(error))
        return report(profile, [broken], custom_kernel=False, policy=policy.name if policy else None)
    names = Names(tree)
    python = PythonScan(tree, names, rules.python)
    native = list(_native_texts(tree, names))
    found = list(python.findings())
    for node, text in _strings(tree, names):
        found += scan_string(text, rules.native.strings, line=node.lineno)
    for text, line in native:
        found += scan_text(text, rules.native, first_line=line)
    if rules.allow is not None:
        found += Allowlist(tree, names, rules.allow).findings()
    if policy is not None:
        found += check_policy(policy, names=_policy_names(python, native), native=native)
    own_kernel = python.defines_kernel()
    if not own_kernel:
        found.append(finding(NO_CUSTOM_KERNEL, 1, f"no kernel of its own beside {entry}: write one with load_inline or triton.jit"))
    opinion = advise(source, mode=advisory)
    found += _opinion(opinion, advisory)
    return report(profile, found, custom_kernel=own_kernel, advisory=opinion, policy=policy.name if policy else None)


def scan_native(text: str, *, profile: str, policy: Policy | None = None) -> GateReport:
    """Scan a generated build source (or any C++/CUDA text)."""
    rules = load_profile(profile)
    found = scan_text(text, rules.native)
    if policy is not None:
        found += check_policy(policy, names=dict(names_in(text)), native=[(text, 1)])
    return report(profile, found, policy=policy.name if policy else None)


def _strings(tree: ast.Module, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """Every string the source spells, whole where it is put together from literals."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr, ast.Call)):
            text = names.fold(node)
            if text:
                yield node, text
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node, node.value.decode("latin-1")


def _native_texts(tree: ast.Module, names: Names) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for node, text in _strings(tree, names):
        if text not in seen and _looks_native(text):
            seen.add(text)
            yield text, node.lineno


def _looks_native(text: str) -> bool:
    return any(mark in text for mark in _NATIVE_MARKS) or (";" in text and "(" in text and "\n" in text) or ("{" in text and ";" in text)


def _policy_names(python: PythonScan, native: list[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {name: getattr(node, "lineno", 1) for name, node in python.used.items()}
    for text, first in native:
        for name, line in names_in(text):
            found.setdefault(name, line + first - 1)
    return found


def _opinion(opinion: Advisory | None, mode: str) -> list[Finding]:
    if opinion is None or opinion.classification not in ("hacked", "suspicious"):
        return []
    refuses = mode == "reject" and opinion.classification == "hacked"
    words = f"{opinion.scanner}: {opinion.classification} ({', '.join(opinion.patterns[:4])})"
    return [finding("advisory", 1, words, Severity.REFUSE if refuses else Severity.FLAG)]
