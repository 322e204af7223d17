"""A C++/CUDA tokenizer, exact where a scan can be fooled: splices, comments, raw strings, directives.

Follows the order of the standard's translation phases ([lex.phases]): lines are spliced, then comments
vanish, then tokens are cut; inside a raw string the splices are put back. Universal character names in
identifiers and the alternative spellings of `#` and `##` are normalised.
Invariant: any text gives tokens, never an exception; what is inside a comment is never a token.
Not for: parsing, or for expanding macros (`evaluator.gate.macros`).
"""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    HEADER = "header"
    """`<...>` or `"..."` after #include, without its delimiters."""
    PUNCTUATION = "punctuation"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` is the decoded text of a string, else `text`."""

    kind: Kind
    text: str
    line: int
    value: str
    directive: str = ""
    """Name of the preprocessor line it stands on (`define`, `include`, ...), empty elsewhere."""
    spaced: bool = False
    """Whether white space precedes it (tells `#define F(x)` from `#define F (x)`)."""
    row: int = 0
    """Number of the logical (spliced) line it stands on."""


_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_NAME_PART = r"(?:\w|\$|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})"
_TOKEN = re.compile(
    r"(?P<newline>\n)"
    r"|(?P<space>[^\S\n]+)"
    r"|(?P<line_comment>//[^\n]*)"
    r"|(?P<comment>/\*(?:.*?\*/|.*\Z))"
    r'|(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\"]{0,16})\()'
    r'|(?P<string>(?:u8|[uUL])?"(?:\\[^\n]|[^"\\\n])*")'
    r"|(?P<character>(?:u8|[uUL])?'(?:\\[^\n]|[^'\\\n])+')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)"
    rf"|(?P<name>(?!\d){_NAME_PART}+)"
    r"|(?P<punctuation>%:%:|%:|<%|%>|<:|:>|\#\#|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=<>!]=|.)",
    re.DOTALL,
)
_HEADER = re.compile(r'[^\S\n]*(?:<([^>\n]*)>|"([^"\n]*)")')
_UNIVERSAL = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ALTERNATIVE = {"%:": "#", "%:%:": "##", "<%": "{", "%>": "}", "<:": "[", ":>": "]"}
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}


def tokenize(text: str) -> list[Token]:
    """Tokens of `text` in order; adjacent string literals stay separate (`joined_strings` merges them)."""
    return list(_Lexer(text).run())


def joined_strings(tokens: list[Token]) -> Iterator[Token]:
    """Every string of the program: runs of adjacent string literals as one token."""
    run: list[Token] = []
    for token in [*tokens, None]:
        joins = token is not None and token.kind is Kind.STRING
        if run and not (joins and token is not None and _same_line(run[-1], token)):
            value = "".join(t.value for t in run)
            yield Token(Kind.STRING, value, run[0].line, value, run[0].directive)
            run = []
        if joins and token is not None:
            run.append(token)


def _same_line(one: Token, other: Token) -> bool:
    """Whether two strings can be adjacent for the compiler: both in code, or on one preprocessor line."""
    return one.directive == other.directive and (not one.directive or one.row == other.row)


class _Lexer:
    def __init__(self, text: str) -> None:
        self._source = text.replace("\r\n", "\n").replace("\r", "\n")
        self._newlines = [m.start() for m in re.finditer("\n", self._source)]
        self._text, self._origin = _splice(self._source)
        self._directive = ""
        self._line_started = False
        """Whether this line has a token already (a `#` only opens a directive as the first)."""
        self._expects_name = False
        self._row = 1

    def run(self) -> Iterator[Token]:
        position, end, spaced = 0, len(self._text), False
        while position < end:
            if self._directive in ("include", "include_next", "import", "embed") and (found := _HEADER.match(self._text, position)):
                name = found[1] if found[1] is not None else found[2]
                yield self._token(Kind.HEADER, name, position)
                position = found.end()
                continue
            match = _TOKEN.match(self._text, position)
            assert match is not None  # the last alternative takes any character
            kind = match.lastgroup if match.lastgroup != "delimiter" else "raw"
            if kind == "raw":
                token, position = self._raw(match)
                self._line_started = True
                yield token
            else:
                position = match.end()
                yield from self._plain(str(kind), match, spaced=spaced)
            spaced = kind in ("space", "newline", "comment", "line_comment")

    def _plain(self, kind: str, match: re.Match[str], *, spaced: bool) -> Iterator[Token]:
        text, position = match.group(), match.start()
        if kind == "newline":
            self._directive, self._line_started, self._expects_name = "", False, False
            self._row += 1
        elif kind == "punctuation" and not self._line_started and _ALTERNATIVE.get(text, text) == "#":
            self._line_started = self._expects_name = True
        elif kind == "name":
            yield from self._name(text, position, spaced=spaced)
        elif kind in ("string", "character"):
            self._line_started = True
            body = text[text.index(text[-1]) + 1 : -1]
            yield self._token(Kind(kind), text, position, value=_decode(body))
        elif kind in ("number", "punctuation"):
            self._line_started = True
            yield self._token(Kind(kind), _ALTERNATIVE.get(text, text), position, spaced=spaced)

    def _name(self, text: str, position: int, *, spaced: bool) -> Iterator[Token]:
        self._line_started = True
        name = _UNIVERSAL.sub(lambda m: _character(int(m[1] or m[2], 16)), text)
        if self._expects_name:
            self._directive, self._expects_name = name, False
        else:
            yield self._token(Kind.NAME, name, position, spaced=spaced)

    def _raw(self, match: re.Match[str]) -> tuple[Token, int]:
        """A raw string: found in the unspliced source, where its closing delimiter is defined."""
        begin = self._origin[match.end() - 1] + 1
        closing = f'){match["delimiter"]}"'
        end = self._source.find(closing, begin)
        body = self._source[begin:] if end < 0 else self._source[begin:end]
        after = len(self._source) if end < 0 else end + len(closing)
        return self._token(Kind.STRING, body, match.start(), value=body), bisect.bisect_left(self._origin, after)

    def _token(self, kind: Kind, text: str, position: int, *, value: str | None = None, spaced: bool = False) -> Token:
        line = bisect.bisect_left(self._newlines, self._origin[position]) + 1
        return Token(kind, text, line, text if value is None else value, self._directive, spaced, self._row)


def _splice(source: str) -> tuple[str, list[int]]:
    """The text without its line splices, and for every character (and the end) its place in the source."""
    pieces: list[str] = []
    origin: list[int] = []
    last = 0
    for found in _SPLICE.finditer(source):
        pieces.append(source[last : found.start()])
        origin.extend(range(last, found.start()))
        last = found.end()
    pieces.append(source[last:])
    origin.extend(range(last, len(source)))
    origin.append(len(source))
    return "".join(pieces), origin


def _decode(body: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] or found[3] or found[4]:
            return _character(int(found[1] or found[3] or found[4], 16))
        if found[2]:
            return _character(int(found[2], 8))
        return _SIMPLE_ESCAPES.get(found[5], found[5])

    return _ESCAPE.sub(one, body)


def _character(code: int) -> str:
    return chr(code) if code <= 0x10FFFF else "�"
