"""Imports a candidate inside the builder sandbox and asks the judge to compile what it wants.

    importer.py REQUESTS REPLIES CANDIDATE ENTRY LIBRARIES

One JSON object a line each way: `{"extension": request, "key": key}` is answered by `{"ok": bool, "text": ...}`; the last line is
`{"done": ...}`. Standard library, torch and the extension stand-in only: mounted alone, beside it.

Not for: results that count. A candidate could write these lines itself; all it gains is to fail later, in the runner.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import extension  # type: ignore[import-not-found]

TEXT_LIMIT = 16_000


class Judge:
    """The two pipes to the judge."""

    def __init__(self, requests: int, replies: int, libraries: str) -> None:
        self._requests = os.fdopen(requests, "w", encoding="utf-8")
        self._replies = os.fdopen(replies, encoding="utf-8")
        self._libraries = libraries

    def compile(self, request: dict[str, Any], key: str) -> str:
        """Have one request compiled; return the library's path."""
        self.say({"extension": request, "key": key})
        reply = json.loads(self._replies.readline())
        if not reply["ok"]:
            raise extension.ExtensionError(f"Error building extension '{request['name']}':\n{reply['text']}")
        return os.path.join(self._libraries, f"{key}.so")

    def say(self, message: dict[str, Any]) -> None:
        """Write one line."""
        self._requests.write(json.dumps(message) + "\n")
        self._requests.flush()


def import_candidate(path: str, entry: str) -> dict[str, Any]:
    """Import the candidate and describe how that went."""
    before = {name.partition(".")[0] for name in sys.modules}
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    sys.modules["candidate"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a candidate are answers too
        return {"kind": _kind(error), "text": _text(error), "entry": False, "modules": []}
    new = sorted({name.partition(".")[0] for name in sys.modules} - before - {"candidate"})
    return {"kind": "ok", "text": "", "entry": hasattr(module, entry), "modules": new[:500]}


def _kind(error: BaseException) -> str:
    if isinstance(error, extension.ExtensionError):
        return "extension"
    return "syntax" if isinstance(error, SyntaxError) else "raised"


def _text(error: BaseException) -> str:
    if isinstance(error, extension.ExtensionError):
        return str(error)[:TEXT_LIMIT]
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    lines = traceback.format_exception(type(error), error, frames)
    return "".join(line for line in lines if "<frozen importlib" not in line)[-TEXT_LIMIT:]


def main(arguments: list[str]) -> None:
    """Import, answer, end without running what the candidate left for the exit."""
    requests, replies, path, entry, libraries = arguments
    judge = Judge(int(requests), int(replies), libraries)
    extension.install_build(judge.compile)
    judge.say({"done": import_candidate(path, entry)})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
