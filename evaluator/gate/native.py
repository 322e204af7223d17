"""Scan of C++/CUDA text: the rows of a profile's native table against tokens.

Invariant: pure; comments never match, names pasted by macros do.
Not for: deciding whether code is fast or right.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from evaluator.gate.macros import TooMuchExpansion, pasted
from evaluator.gate.report import Finding, Severity, finding
from evaluator.gate.table import Ban, Globs, NativeTable, TextBan, Where
from evaluator.gate.tokens import Kind, Token, joined_strings, tokenize

_AFTER_PARAMETERS = frozenset({"noexcept", "const", "override", "final", "throw", "__attribute__", "__attribute", "volatile"})
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_KEYWORDS = frozenset({"return", "else", "do", "throw", "case", "co_return", "co_yield", "not", "and", "or"})
_ASM = frozenset({"asm", "__asm__", "__asm"})


def scan_text(text: str, table: NativeTable, *, first_line: int = 1) -> list[Finding]:
    """Findings in one native text whose first line is line `first_line` of the candidate."""
    tokens = tokenize(text)
    found = [finding("trigraph", 1, "a trigraph")] if _TRIGRAPH.search(text) and "?" in text else []
    found += _Scan(table).tokens(tokens)
    try:
        found += _Scan(table).tokens(pasted(tokens))
    except TooMuchExpansion:
        found.append(finding("macros", 1, "macros expand without bound"))
    return [Finding(rule=f.rule, line=f.line + first_line - 1, text=f.text, severity=f.severity) for f in found]


def names_in(text: str) -> Iterator[tuple[str, int]]:
    """Every identifier and qualified name with its line, pasted ones too (for a policy's patterns)."""
    tokens = tokenize(text)
    with contextlib.suppress(TooMuchExpansion):
        tokens = tokens + pasted(tokens)
    for index, token in enumerate(tokens):
        if token.kind is Kind.NAME:
            yield token.text, token.line
            if (qualified := _qualified(tokens, index)) != token.text:
                yield qualified, token.line


class _Scan:
    def __init__(self, table: NativeTable) -> None:
        self._table = table
        self._bans = [(ban, Globs(ban.names)) for ban in table.names]
        self._headers = [(ban, Globs(ban.names)) for ban in table.headers]
        self._allowed = None if table.allowed_headers is None else Globs(table.allowed_headers)
        self._strings = [(ban, re.compile(ban.pattern)) for ban in table.strings]

    def tokens(self, tokens: list[Token]) -> list[Finding]:
        found: list[Finding] = []
        for index, token in enumerate(tokens):
            if token.kind is Kind.NAME:
                found += self._name(tokens, index)
            elif token.kind is Kind.HEADER:
                found += self._header(token)
        found += self._literals(tokens)
        return found

    def _name(self, tokens: list[Token], index: int) -> Iterator[Finding]:
        token = tokens[index]
        qualified = _qualified(tokens, index)
        for ban, globs in self._bans:
            if (token.text in globs or qualified in globs) and _USES[ban.where](tokens, index):
                yield _found(ban, token.line, qualified)

    def _header(self, token: Token) -> Iterator[Finding]:
        for ban, globs in self._headers:
            if token.text in globs:
                yield _found(ban, token.line, f"#include <{token.text}>")
        if token.directive == "embed":
            yield finding("opaque-code", token.line, f"#embed <{token.text}>")
        elif self._allowed is not None and token.text not in self._allowed:
            yield finding("header", token.line, f"#include <{token.text}> is not on the allowlist")

    def _literals(self, tokens: list[Token]) -> Iterator[Finding]:
        assembly = _assembly_lines(tokens)
        symbols = Globs(name for ban, _ in self._bans if ban.where is Where.DEFINED for name in ban.names)
        for literal in joined_strings(tokens):
            yield from self._literal(literal, inside_assembly=literal.line in assembly)
            if literal.value in symbols:
                yield finding("clock-redefined", literal.line, f'"{literal.value}" named as a symbol')

    def _literal(self, literal: Token, *, inside_assembly: bool) -> Iterator[Finding]:
        for ban, pattern in self._strings:
            if ban.assembly and not inside_assembly:
                continue
            if match := pattern.search(literal.value):
                yield _found(ban, literal.line, f'"{match.group()}"')


def scan_string(text: str, bans: tuple[TextBan, ...], *, line: int) -> Iterator[Finding]:
    """Rows about string contents against one Python string."""
    for ban in bans:
        if ban.python and (match := re.search(ban.pattern, text)):
            yield _found(ban, line, f'"{match.group()}"')


def _found(ban: Ban | TextBan, line: int, what: str) -> Finding:
    return finding(ban.rule, line, f"{what}: {ban.why}", Severity(ban.severity))


def _qualified(tokens: list[Token], index: int) -> str:
    """`a::b::c` for the token c, read backwards."""
    name = tokens[index].text
    while _text(tokens, index - 1) == "::" and _is_scope(tokens, index - 2):
        index -= 2
        name = f"{tokens[index].text}::{name}"
    return name


def _text(tokens: list[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _is_member(tokens: list[Token], index: int) -> bool:
    """Whether the name is `x.name`, `x->name` or `other::name` (`std::` and a bare `::` are the C library's)."""
    before = _text(tokens, index - 1)
    if before in (".", "->"):
        return True
    return before == "::" and _is_scope(tokens, index - 2) and tokens[index - 2].text != "std"


def _is_scope(tokens: list[Token], index: int) -> bool:
    return index >= 0 and tokens[index].kind is Kind.NAME and tokens[index].text not in _KEYWORDS


def _free_use(tokens: list[Token], index: int) -> bool:
    if _is_member(tokens, index) or tokens[index].directive == "include":
        return False
    before, after = _text(tokens, index - 1), _text(tokens, index + 1)
    if _is_scope(tokens, index - 1) and after == "(":
        return False  # `void write(...)`: a declaration of the kernel's own
    return after == "(" or before == "&" or (before in ("=", ",", "(", "{") and after in (";", ",", ")", "}"))


def _defined(tokens: list[Token], index: int) -> bool:
    if tokens[index].directive == "define" and _text(tokens, index - 1) != "(" and _opens_line(tokens, index):
        return True
    if _text(tokens, index - 1) == "&" and _text(tokens, index + 1) != "(":
        return True
    return _text(tokens, index + 1) == "(" and _text(tokens, index - 1) not in (".", "->") and _has_body(tokens, index + 1)


def _opens_line(tokens: list[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].row != tokens[index].row


def _has_body(tokens: list[Token], index: int) -> bool:
    """Whether the parameter list that opens at `index` is followed by a function body."""
    level = 0
    while index < len(tokens):
        text = tokens[index].text
        level += (text == "(") - (text == ")")
        index += 1
        if level == 0 and _text(tokens, index) not in _AFTER_PARAMETERS and _text(tokens, index) != "(":
            return _text(tokens, index) == "{"
        if level == 0 and _text(tokens, index) in _AFTER_PARAMETERS:
            index += 1
            if _text(tokens, index) != "(":
                return _text(tokens, index) == "{" or _text(tokens, index) in _AFTER_PARAMETERS
    return False


def _assembly_lines(tokens: list[Token]) -> set[int]:
    """Lines that belong to asm statements."""
    lines: set[int] = set()
    for index, token in enumerate(tokens):
        if token.text in _ASM:
            end = next((i for i in range(index, len(tokens)) if tokens[i].text == ";"), len(tokens) - 1)
            lines |= set(range(token.line, tokens[end].line + 1))
    return lines


_USES = {Where.ANY: lambda tokens, index: True, Where.FREE: _free_use, Where.DEFINED: _defined}
