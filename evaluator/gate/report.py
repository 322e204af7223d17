"""What the static gate says about one source.

Invariant: a report is allowed exactly when none of its findings has severity `refuse`.
Not for: the verdict. No guarantee rests on a scan; it is the cheap first line and a help to honest agents.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.records import Status

MAX_FINDINGS = 50
MAX_TEXT = 160
NO_CUSTOM_KERNEL = "no-custom-kernel"
SYNTAX = "syntax"


class Severity(enum.StrEnum):
    """What a finding asks for."""

    REFUSE = "refuse"
    ASK = "ask"
    """On the policy's ask-first list: waits for the operator."""
    FLAG = "flag"
    """Reported, refuses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place that a rule matched."""

    rule: str
    line: int
    """Line of the candidate's text, from 1; for native code inside a string the line of the token."""
    text: str
    """What was found and what to do instead, one line, bounded."""
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """Opinion of an optional outside scanner; refuses only where the caller asked for that."""

    scanner: str
    classification: str
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """Outcome of one scan."""

    profile: str
    allowed: bool
    findings: tuple[Finding, ...]
    custom_kernel: bool = True
    """Whether the source defines a kernel of its own in any known way."""
    advisory: Advisory | None = None
    policy: str | None = None
    """Name of the policy in force."""

    @property
    def needs_operator(self) -> bool:
        """Whether something on the policy's ask-first list is used."""
        return any(f.severity is Severity.ASK for f in self.findings)

    @property
    def status(self) -> Status:
        """`ok`, or the status a refusal gets."""
        rules = {f.rule for f in self.findings if f.severity is Severity.REFUSE}
        if not rules:
            return Status.OK
        if SYNTAX in rules:
            return Status.COMPILE_ERROR
        return Status.NO_CUSTOM_KERNEL if rules == {NO_CUSTOM_KERNEL} else Status.FORBIDDEN

    @property
    def reason(self) -> str:
        """The first refusal in one line, empty when allowed."""
        refusals = [f for f in self.findings if f.severity is Severity.REFUSE]
        if not refusals:
            return ""
        first, more = refusals[0], len(refusals) - 1
        return f"line {first.line}: {first.text} ({first.rule})" + (f" and {more} more" if more else "")


def finding(rule: str, line: int, text: str, severity: Severity = Severity.REFUSE) -> Finding:
    """A finding with its text made one bounded printable line."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return Finding(rule=rule, line=line, text=" ".join(clean.split())[:MAX_TEXT], severity=severity)


def report(
    profile: str,
    found: Iterable[Finding],
    *,
    custom_kernel: bool = True,
    advisory: Advisory | None = None,
    policy: str | None = None,
) -> GateReport:
    """A report of distinct findings, refusals first, then by line; at most MAX_FINDINGS are kept."""
    order = {Severity.REFUSE: 0, Severity.ASK: 1, Severity.FLAG: 2}
    distinct = sorted(set(found), key=lambda f: (order[f.severity], f.line, f.rule, f.text))
    return GateReport(
        profile=profile,
        allowed=not any(f.severity is Severity.REFUSE for f in distinct),
        findings=tuple(distinct[:MAX_FINDINGS]),
        custom_kernel=custom_kernel,
        advisory=advisory,
        policy=policy,
    )
