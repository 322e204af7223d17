"""Macro expansion, as far as a scan needs it: names that only exist after `##` has pasted them.

The result over-approximates: arguments are expanded before they are pasted, and a macro that is
defined twice is expanded in every way. So a name may show up that the compiler never builds, but
none that it builds by pasting is missed within the budget.
Invariant: bounded work; a text that exceeds the budget says so instead of being half scanned.
Not for: conditional compilation, or for text that is not macro pasting.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.gate.tokens import Kind, Token

MAX_TOKENS = 200_000
MAX_DEPTH = 12


class TooMuchExpansion(Exception):
    """The macros of a text expand beyond MAX_TOKENS."""


@dataclass(frozen=True, slots=True)
class Macro:
    """One definition; `parameters` is None for an object-like macro."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


def pasted(tokens: list[Token]) -> list[Token]:
    """Tokens of the text's macro uses after expansion; empty where nothing is ever pasted."""
    if not any(t.text == "##" for t in tokens):
        return []
    macros = _definitions(tokens)
    return _Expander(macros).expand([t for t in tokens if not t.directive], MAX_DEPTH)


def _definitions(tokens: list[Token]) -> dict[str, list[Macro]]:
    macros: dict[str, list[Macro]] = {}
    for line in _define_lines(tokens):
        name, rest = line[0].text, line[1:]
        parameters: tuple[str, ...] | None = None
        if rest and rest[0].text == "(" and not rest[0].spaced:
            close = next((i for i, t in enumerate(rest) if t.text == ")"), len(rest) - 1)
            parameters = tuple("__VA_ARGS__" if t.text == "..." else t.text for t in rest[1:close] if t.text != ",")
            rest = rest[close + 1 :]
        macros.setdefault(name, []).append(Macro(parameters, tuple(rest)))
    return macros


def _define_lines(tokens: list[Token]) -> list[list[Token]]:
    lines: list[list[Token]] = []
    previous: Token | None = None
    for token in tokens:
        if token.directive == "define":
            if lines and previous is not None and (previous.directive, previous.row) == ("define", token.row):
                lines[-1].append(token)
            else:
                lines.append([token])
        previous = token
    return lines


class _Expander:
    def __init__(self, macros: dict[str, list[Macro]]) -> None:
        self._macros = macros
        self._spent = 0

    def expand(self, tokens: list[Token], depth: int) -> list[Token]:
        output: list[Token] = []
        position = 0
        while position < len(tokens):
            token = tokens[position]
            position += 1
            uses = self._macros.get(token.text, []) if token.kind is Kind.NAME and depth else []
            if not uses:
                output.append(token)
                continue
            arguments, after = _arguments(tokens, position)
            for macro in uses:
                if macro.parameters is None:
                    output += self._replace(macro, [], token, depth)
                elif arguments is not None:
                    output += self._replace(macro, arguments, token, depth)
            if arguments is not None and any(m.parameters is not None for m in uses):
                position = after
        return output

    def _replace(self, macro: Macro, arguments: list[list[Token]], use: Token, depth: int) -> list[Token]:
        values = {}
        for index, name in enumerate(macro.parameters or ()):
            chosen = arguments[index:] if name == "__VA_ARGS__" else arguments[index : index + 1]
            values[name] = [t for argument in chosen for t in self.expand(argument, depth - 1)]
        body: list[Token] = []
        for token in macro.body:
            body += values.get(token.text, [token]) if token.kind is Kind.NAME else [token]
        self._spent += len(body) + 1
        if self._spent > MAX_TOKENS:
            raise TooMuchExpansion
        return self.expand(_paste(body, use.line), depth - 1)


def _paste(body: list[Token], line: int) -> list[Token]:
    output: list[Token] = []
    position = 0
    while position < len(body):
        token = body[position]
        if token.text == "##" and output and position + 1 < len(body):
            text = output.pop().text + body[position + 1].text
            kind = Kind.NAME if text.replace("$", "_").isidentifier() else Kind.PUNCTUATION
            output.append(Token(kind, text, line, text))
            position += 2
            continue
        output.append(Token(token.kind, token.text, line, token.value))
        position += 1
    return output


def _arguments(tokens: list[Token], position: int) -> tuple[list[list[Token]] | None, int]:
    """The argument lists of a call that opens at `position`, and the index after it."""
    if position >= len(tokens) or tokens[position].text != "(":
        return None, position
    arguments: list[list[Token]] = [[]]
    level = 0
    for index in range(position, len(tokens)):
        text = tokens[index].text
        level += (text == "(") - (text == ")")
        if level == 0:
            return arguments, index + 1
        if text == "," and level == 1:
            arguments.append([])
        elif index > position:
            arguments[-1].append(tokens[index])
    return None, position
