"""Stands in for `torch.utils.cpp_extension.load_inline` and `load` inside the sandbox.

Two ways to install it. `install_build(ask)`: each call is handed to `ask`, which has it compiled elsewhere (no compiler and no second
process is ever needed in here). `install_load(directory)`: each call is looked up by the hash of its arguments among what was built
before. Both then import the shared library, so a candidate sees what torch would have given it.

Invariant: the same arguments give the same key in both ways; sources are completed exactly as torch does (headers, bindings).
Not for: deciding anything. Call counts and blanking live in the candidate's own process: they may refuse, nothing rests on them.
Standard library and torch only: this file is mounted into the sandbox alone.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

FORMAT = 1
HEADER_SUFFIXES = (".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp")
CUDA_SUFFIXES = (".cu", ".cuh")
FILES_LIMIT, BYTES_LIMIT = 128, 4 << 20
PRIVATE = "/scratch"
"""Include directories below it are shipped as text: what a candidate wrote is not visible to the compiler otherwise."""

Request = dict[str, Any]
Ask = Callable[[Request, str], str]
"""Has a request with its key compiled and returns the path of the library; raises ExtensionError with the compiler's text."""

_calls: dict[str, int] = {}
_blank = False


class ExtensionError(RuntimeError):
    """An extension that could not be built or was not built before."""


def install_build(ask: Ask) -> None:
    """Replace torch's two functions; every call is compiled through `ask`."""
    _install(ask)


def install_load(directory: str, *, blank: bool = False) -> None:
    """Replace torch's two functions by a look-up in `directory`; see `set_blank` for `blank`."""
    set_blank(blank)

    def look_up(request: Request, key: str) -> str:
        path = os.path.join(directory, f"{key}.so")
        if not os.path.isfile(path):
            raise ExtensionError(
                f"extension '{request['name']}' was not built: its sources or flags differ from those of the build step. "
                "They must not depend on time, randomness, the machine or the inputs."
            )
        return path

    _install(look_up)


def set_blank(on: bool) -> None:
    """With `on`, every extension function still runs, but what it returns or writes in place is then overwritten with garbage."""
    global _blank
    _blank = on


def call_counts() -> dict[str, int]:
    """How often each extension function was called, by `extension.function`."""
    return dict(_calls)


def key_of(request: Request) -> str:
    """Hash of everything that was asked for."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")).hexdigest()


def inline_request(
    name: str,
    cpp_sources: Any,
    cuda_sources: Any = None,
    functions: Any = None,
    *,
    no_implicit_headers: bool = False,
    with_pytorch_error_handling: bool = True,
    **rest: Any,
) -> Request:
    """The request of one `load_inline` call: sources completed with headers and bindings as torch completes them."""
    cpp = _texts(cpp_sources, "cpp_sources")
    cuda = _texts(cuda_sources, "cuda_sources")
    headers = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    bindings = _bindings(functions, safe=with_pytorch_error_handling)
    sources = [{"file": "main.cpp", "text": "\n".join([*headers, *cpp, *bindings])}]
    if cuda:
        cuda_headers = [] if no_implicit_headers else ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]
        sources.append({"file": "cuda.cu", "text": "\n".join([*cuda_headers, *cuda])})
    return _request(name, sources, {}, **rest)


def files_request(name: str, sources: Any, **rest: Any) -> Request:
    """The request of one `load` call: the files' texts, and the headers that lie beside them."""
    paths = [os.path.abspath(os.fspath(p)) for p in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    texts = [{"file": f"{index}-{os.path.basename(path)}", "text": _read(path)} for index, path in enumerate(paths)]
    return _request(name, texts, _headers(dict.fromkeys(os.path.dirname(p) for p in paths)), **rest)


def _request(
    name: str,
    sources: list[dict[str, str]],
    headers: dict[str, dict[str, str]],
    *,
    extra_cflags: Any = None,
    extra_cuda_cflags: Any = None,
    extra_ldflags: Any = None,
    extra_include_paths: Any = None,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    **ignored: Any,
) -> Request:
    if not isinstance(name, str) or not name.isidentifier():
        raise ExtensionError(f"an extension's name must be an identifier, not {name!r}")
    if ignored.get("with_sycl") or ignored.get("sycl_sources") or ignored.get("is_standalone"):
        raise ExtensionError(f"extension '{name}': SYCL sources and standalone programs are not supported")
    includes = [os.path.abspath(p) for p in _flags(extra_include_paths)]
    private = [p for p in includes if p.startswith(PRIVATE)]
    cuda = any(s["file"].endswith(CUDA_SUFFIXES) for s in sources) if with_cuda is None else bool(with_cuda)
    return {
        "format": FORMAT,
        "name": name,
        "sources": sources,
        "headers": {**headers, **_headers(private)},
        "include_paths": includes,
        "cflags": _flags(extra_cflags),
        "cuda_cflags": _flags(extra_cuda_cflags),
        "ldflags": _flags(extra_ldflags),
        "with_cuda": cuda,
        "python_module": bool(is_python_module),
    }


def _install(find: Ask) -> None:
    def load_inline(
        name: str, cpp_sources: Any, cuda_sources: Any = None, sycl_sources: Any = None, functions: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        rest = _positional(cpp_extension_inline_order, args) | kwargs
        request = inline_request(name, cpp_sources, cuda_sources, functions, sycl_sources=sycl_sources, **rest)
        return _open(request, find)

    def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
        return _open(files_request(name, sources, **(_positional(cpp_extension_order, args) | kwargs)), find)

    cpp_extension.load_inline = load_inline
    cpp_extension.load = load


cpp_extension_order = (
    "extra_cflags",
    "extra_cuda_cflags",
    "extra_sycl_cflags",
    "extra_ldflags",
    "extra_include_paths",
    "build_directory",
    "verbose",
)
cpp_extension_inline_order = cpp_extension_order
"""Parameters that torch also takes by position, after the sources (and, for load_inline, the functions)."""


def _positional(names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    if len(values) > len(names):
        raise TypeError("too many positional arguments: name them")
    return dict(zip(names, values, strict=False))


def _open(request: Request, find: Ask) -> Any:
    key = key_of(request)
    path = find(request, key)
    if not request["python_module"]:
        before = set(torch._C._dispatch_get_all_op_names())
        torch.ops.load_library(path)
        _watch_operators(set(torch._C._dispatch_get_all_op_names()) - before)
        return path
    module = _import(request["name"], path)
    for attribute, value in list(vars(module).items()):
        if type(value).__name__ in ("builtin_function_or_method", "function", "instancemethod") and not attribute.startswith("__"):
            setattr(module, attribute, counted(f"{request['name']}.{attribute}", value))
    return module


def _import(name: str, path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ExtensionError(f"extension '{name}' cannot be imported from {path}")
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise ExtensionError(f"extension '{name}' was linked but cannot be loaded: {error}") from error
    return module


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, counted under `name`; where blanking is on, what it returns or writes in place is overwritten after it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _calls[name] = _calls.get(name, 0) + 1
        if not _blank:
            return function(*args, **kwargs)
        tensors = list(_tensors((args, kwargs)))
        before = [t.detach().clone() for t in tensors]
        result = function(*args, **kwargs)
        for tensor, old in zip(tensors, before, strict=True):
            if not _same(tensor, old):
                _spoil(tensor)
        for tensor in _tensors(result):
            _spoil(tensor)
        return result

    _calls.setdefault(name, 0)
    return call


def _watch_operators(names: set[str]) -> None:
    """Count and blank operators that a library registered with the dispatcher (they are called as torch.ops.<namespace>.<name>)."""
    for namespace, _, name in (n.partition("::") for n in sorted(names)):
        space, name = getattr(torch.ops, namespace), name.partition(".")[0]
        packet = getattr(space, name)
        if isinstance(packet, torch._ops.OpOverloadPacket):
            setattr(space, name, counted(f"{namespace}.{name}", packet))


def _tensors(value: Any, depth: int = 4) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) and depth:
        for item in value.values():
            yield from _tensors(item, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for item in value:
            yield from _tensors(item, depth - 1)
    elif type(value).__name__ == "TensorDescriptor" and isinstance(getattr(value, "base", None), torch.Tensor):
        yield value.base  # how a Triton kernel is handed a tensor with its block shape


def _same(tensor: torch.Tensor, old: torch.Tensor) -> bool:
    if tensor.shape != old.shape or tensor.dtype != old.dtype:
        return False
    return bool(torch.equal(torch.nan_to_num(tensor.detach()), torch.nan_to_num(old)))


def _spoil(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.detach().fill_(float("nan"))
        elif tensor.dtype is torch.bool:
            tensor.detach().logical_not_()
        else:
            tensor.detach().bitwise_not_()


def _bindings(functions: Any, *, safe: bool) -> list[str]:
    if functions is None:
        return []
    names = [functions] if isinstance(functions, str) else functions
    if isinstance(names, (list, tuple)):
        names = {f: f for f in names}
    if not isinstance(names, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    pattern = 'm.def("{0}", torch::wrap_pybind_function({0}), "{1}");' if safe else 'm.def("{0}", {0}, "{1}");'
    return ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *(pattern.format(name, text) for name, text in names.items()), "}"]


def _texts(value: Any, what: str) -> list[str]:
    texts = [] if value is None else [value] if isinstance(value, str) else list(value)
    if not all(isinstance(t, str) for t in texts):
        raise ExtensionError(f"{what} must be a string or a list of strings")
    return texts


def _flags(value: Any) -> list[str]:
    flags = [] if value is None else [value] if isinstance(value, str) else list(value)
    return [str(f).strip() for f in flags if str(f).strip()]


def _headers(directories: Iterable[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    count = size = 0
    for directory in directories:
        found[directory] = {}
        for folder, _, names in sorted(os.walk(directory)):
            for name in sorted(n for n in names if n.endswith(HEADER_SUFFIXES)):
                path = os.path.join(folder, name)
                text = _read(path)
                count, size = count + 1, size + len(text)
                if count > FILES_LIMIT or size > BYTES_LIMIT:
                    raise ExtensionError(f"more than {FILES_LIMIT} headers or {BYTES_LIMIT >> 20} MiB of them below {directory}")
                found[directory][os.path.relpath(path, directory)] = text
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(BYTES_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        raise ExtensionError(f"source file {path}: {error}") from error


if __name__ == "__main__":
    sys.exit("this module is installed by the builder or the runner")
