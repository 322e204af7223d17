"""Checks what a builder sandbox asked to have compiled: its words are untrusted.

Invariant: after `checked`, every field has its type and size, every file name is a plain name and every path is absolute and normal, so
nothing can be written outside its directory.
Not for: flags (`flags`) or texts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

FILE = re.compile(r"[\w.+-]{1,100}\.(cpp|cc|cxx|c|C|cu)$")
NAME = re.compile(r"[A-Za-z_]\w{0,99}$")
TEXT_BYTES = 8 << 20
COUNT = 128


class BadRequest(ValueError):
    """A request that our own stand-in would never have made."""


def checked(request: Any) -> dict[str, Any]:
    """Return `request` if it is well formed, else raise BadRequest."""
    if not isinstance(request, dict) or request.get("format") != 1:
        raise BadRequest("no request")
    _require(isinstance(request.get("name"), str) and bool(NAME.match(request["name"])), "name")
    for field in ("include_paths", "cflags", "cuda_cflags", "ldflags"):
        _require(_strings(request.get(field)), field)
    for field in ("with_cuda", "python_module"):
        _require(isinstance(request.get(field), bool), field)
    _require(all(_absolute(path) for path in request["include_paths"]), "include_paths")
    _check_sources(request.get("sources"))
    _check_headers(request.get("headers"))
    return request


def key_of(request: dict[str, Any]) -> str:
    """Hash of everything that was asked for; the stand-in in the runner computes the same one."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")).hexdigest()


def _check_sources(sources: Any) -> None:
    _require(isinstance(sources, list) and 0 < len(sources) <= COUNT, "sources")
    for source in sources:
        _require(isinstance(source, dict) and source.keys() == {"file", "text"}, "sources")
        _require(isinstance(source["file"], str) and bool(FILE.match(source["file"])), "source file name")
        _require(isinstance(source["text"], str) and len(source["text"]) <= TEXT_BYTES, "source text")
    _require(len({source["file"] for source in sources}) == len(sources), "source file names")


def _check_headers(headers: Any) -> None:
    _require(isinstance(headers, dict) and len(headers) <= COUNT, "headers")
    for directory, files in headers.items():
        _require(_absolute(directory), "header directory")
        _require(isinstance(files, dict) and len(files) <= COUNT, "headers")
        for name, text in files.items():
            _require(isinstance(text, str) and len(text) <= TEXT_BYTES, "header text")
            _require(isinstance(name, str) and _relative(name), "header name")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise BadRequest(f"malformed {what}")


def _strings(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= COUNT and all(isinstance(v, str) and len(v) < 4096 and "\0" not in v for v in value)


def _absolute(path: Any) -> bool:
    return isinstance(path, str) and os.path.isabs(path) and os.path.normpath(path) == path and "\0" not in path


def _relative(name: str) -> bool:
    return bool(name) and not os.path.isabs(name) and os.path.normpath(name) == name and not name.startswith("..") and "\0" not in name
