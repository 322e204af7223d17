"""The JSON Schema of a journal's records, generated from the code.

    python -m state.schema_json            prints it
    python -m state.schema_json --check    exit 1 when the committed file is not current
    python -m state.schema_json --write    writes state/attempts.schema.json

Invariant: unknown kinds and unknown fields are valid, as readers accept them.
Not for: checking the chain, which no schema can.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from state.events import FORMAT_VERSION, KINDS, Record

PATH = Path(__file__).with_name("attempts.schema.json")


def build() -> dict[str, Any]:
    """The schema as builtins."""
    types = [Record, *KINDS.values()]
    refs, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    by_kind = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"properties": {"data": ref}}}
        for kind, ref in zip(KINDS, refs[1:], strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of attempts.jsonl, format version {FORMAT_VERSION}",
        "allOf": [refs[0], *by_kind],
        "$defs": dict(sorted(components.items())),
    }


def text() -> str:
    """The committed file's text."""
    return json.dumps(build(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Print, write or check the schema; returns the exit code."""
    if arguments == ["--write"]:
        PATH.write_text(text(), encoding="utf-8")
    elif arguments == ["--check"]:
        if not PATH.exists() or PATH.read_text(encoding="utf-8") != text():
            sys.stderr.write(f"{PATH.name} is not current; run `python -m state.schema_json --write`\n")
            return 1
    elif arguments:
        sys.stderr.write("usage: python -m state.schema_json [--write|--check]\n")
        return 2
    else:
        sys.stdout.write(text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
