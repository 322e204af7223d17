"""Running a problem's own modules from the texts that were hashed.

Invariant: only the given texts run, under private module names; they see each other under the names they
have in the problem (`from utils import ...`), the rest of the process keeps its own modules.
Not for: candidates. A candidate never runs in a process that uses this module.
"""

from __future__ import annotations

import builtins
import itertools
import linecache
import sys
import types
from collections.abc import Mapping
from typing import Any

from problems.errors import BadProblem

_serial = itertools.count()


class ModuleSet:
    """The modules of one problem, executed on first use."""

    def __init__(self, texts: Mapping[str, str], *, label: str) -> None:
        self._texts = {name.removesuffix(".py"): text for name, text in texts.items() if name.endswith(".py")}
        self._prefix = f"_problem{next(_serial)}"
        self._label = label
        self._modules: dict[str, types.ModuleType] = {}

    def module(self, name: str) -> types.ModuleType:
        """The module that lies in `<name>.py`; BadProblem when its top level raises."""
        if name not in self._modules:
            self._run(name)
        return self._modules[name]

    def _run(self, name: str) -> None:
        module = types.ModuleType(f"{self._prefix}_{name}")
        module.__file__ = f"<{self._label} {name}.py {self._prefix}>"
        text = self._texts[name]
        linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        sys.modules[module.__name__] = module
        self._modules[name] = module
        try:
            exec(compile(text, module.__file__, "exec"), vars(module))
        except Exception as error:
            del self._modules[name], sys.modules[module.__name__]
            raise BadProblem(f"{self._label}: {name}.py raised {describe(error)}", "the problem's module must import cleanly") from error

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        bare = name or (fromlist or ("",))[0]
        if level <= 1 and bare in self._texts:
            module = self.module(bare)
            return module if name else types.SimpleNamespace(**{bare: module})
        return builtins.__import__(name, globals, locals, fromlist or (), level)


def describe(error: BaseException) -> str:
    """`TypeError: ...` on one bounded line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
