"""A run's own wishes: what is forbidden, what needs a person first, and what to do instead.

One YAML file feeds the gate, the prompts and the report alike:

    name: my-policy
    forbid:
      - pattern: torch.compile            # glob over dotted Python names and native identifiers
        why: the task is about kernels
        instead: write the fused kernel
    ask_first:
      - tokens: "(cudaLaunchAttributeID) <number>"   # native tokens; <number>, <name>, <string> match any such token
        why: a launch attribute by its raw constant

Invariant: frozen and hashed; the same text gives the same hash everywhere.
Not for: the bright lines of a profile, which no policy can lift.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evaluator.errors import UsageError
from evaluator.gate.report import Finding, Severity, finding
from evaluator.gate.table import Globs
from evaluator.gate.tokens import Kind, Token, tokenize

_ANY = {"number": Kind.NUMBER, "name": Kind.NAME, "string": Kind.STRING}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """One wish: exactly one of `pattern` and `tokens` is set."""

    pattern: str = ""
    tokens: str = ""
    why: str = ""
    instead: str = ""

    @property
    def advice(self) -> str:
        """Why, and what to do instead, in one line."""
        return "; ".join(part for part in (self.why, f"instead: {self.instead}" if self.instead else "") if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A run's policy."""

    name: str
    forbid: tuple[PolicyRow, ...] = ()
    ask_first: tuple[PolicyRow, ...] = ()
    sha256: str = ""
    """Of the file's text."""


def load_policy(path: str | Path) -> Policy:
    """Read a policy file; UsageError says what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"policy {path}: {error}", "give the path of a readable YAML file") from error
    return parse_policy(text, name=str(path))


def parse_policy(text: str, *, name: str) -> Policy:
    """A policy from its YAML text."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"policy {name}: {' '.join(str(error).split())[:200]}", "mend the YAML") from error
    if not isinstance(data, dict) or set(data) - {"name", "forbid", "ask_first"}:
        raise UsageError(f"policy {name}: expected name, forbid and ask_first", "see the example in evaluator/gate/policy.py")
    return Policy(
        name=str(data.get("name", name)),
        forbid=_rows(data.get("forbid"), name),
        ask_first=_rows(data.get("ask_first"), name),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def check_policy(policy: Policy, *, names: dict[str, int], native: list[tuple[str, int]]) -> Iterator[Finding]:
    """Findings of a source's names (with their lines) and its native texts (with their first lines)."""
    streams = [(tokenize(text), line) for text, line in native]
    for rows, severity in ((policy.forbid, Severity.REFUSE), (policy.ask_first, Severity.ASK)):
        for row in rows:
            for where, what in _uses(row, names, streams):
                yield finding("policy", where, f"{what}: {row.advice or policy.name}", severity)


def _uses(row: PolicyRow, names: dict[str, int], streams: list[tuple[list[Token], int]]) -> Iterator[tuple[int, str]]:
    if row.pattern:
        globs = Globs([row.pattern])
        yield from ((line, name) for name, line in names.items() if name in globs)
    else:
        wanted = _wanted(row.tokens)
        for tokens, first in streams:
            yield from ((line + first - 1, row.tokens) for line in _sequences(tokens, wanted))


def _wanted(text: str) -> list[str | Kind]:
    """Tokens to match in order; `<number>` and the like become kinds."""
    tokens = [t.text for t in tokenize(text)]
    wanted: list[str | Kind] = []
    while tokens:
        if len(tokens) >= 3 and (tokens[0], tokens[2]) == ("<", ">") and tokens[1] in _ANY:
            wanted.append(_ANY[tokens[1]])
            tokens = tokens[3:]
        else:
            wanted.append(tokens.pop(0))
    return wanted


def _sequences(tokens: list[Token], wanted: list[str | Kind]) -> Iterator[int]:
    for start in range(len(tokens) - len(wanted) + 1):
        pairs = zip(tokens[start : start + len(wanted)], wanted, strict=True)
        if all(token.kind is want if isinstance(want, Kind) else token.text == want for token, want in pairs):
            yield tokens[start].line


def _rows(data: Any, name: str) -> tuple[PolicyRow, ...]:
    if data is None:
        return ()
    if not isinstance(data, list):
        raise UsageError(f"policy {name}: forbid and ask_first are lists", "start every row with '- pattern: ...'")
    return tuple(_row(row, name) for row in data)


def _row(row: Any, name: str) -> PolicyRow:
    fields = {"pattern", "tokens", "why", "instead"}
    if not isinstance(row, dict) or set(row) - fields or not all(isinstance(v, str) for v in row.values()):
        raise UsageError(f"policy {name}: a row has {', '.join(sorted(fields))}, all texts; got {str(row)[:80]}", "mend that row")
    if bool(row.get("pattern")) == bool(row.get("tokens")):
        raise UsageError(f"policy {name}: a row names exactly one of pattern and tokens; got {str(row)[:80]}", "mend that row")
    return PolicyRow(**row)
