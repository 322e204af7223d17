"""What importing each package loads: the layers hold at run time, where a static graph misses late imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, json, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), name + "."):
        if not found.name.endswith("__main__") and ".builtin." not in found.name:
            importlib.import_module(found.name)
print(json.dumps(sorted({m.partition(".")[0] for m in sys.modules})))
"""


def loaded(*packages: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *packages], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("packages", "never"),
    [
        (("console",), {"torch", "triton", "anthropic"}),
        (("daemon",), {"torch", "triton", "textual"}),
        (("agents",), {"torch", "triton", "textual"}),
        (("state",), {"torch", "textual", "anthropic", "scipy", "starlette"}),
        (("evidence",), {"torch", "textual", "anthropic"}),
        (("problems",), {"torch", "textual", "anthropic", "msgspec"}),
        (("evaluator.records",), {"torch", "textual", "anthropic", "msgspec", "numpy", "scipy", "yaml"}),
        (
            ("console.cli", "console.views", "console.sources", "console.plain", "console.demo", "console.doctor"),
            {"torch", "textual", "plotext"},
        ),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else value[0],
)
def test_importing_a_package_never_loads(packages: tuple[str, ...], never: set[str]) -> None:
    assert loaded(*packages) & never == set()


@pytest.mark.parametrize(("library", "package"), [("textual", "console"), ("textual_plotext", "console"), ("anthropic", "agents")])
def test_a_library_is_imported_by_one_package_only(library: str, package: str) -> None:
    users = {
        path.relative_to(ROOT).parts[0]
        for top in ("problems", "evaluator", "state", "agents", "daemon", "evidence", "console")
        for path in (ROOT / top).rglob("*.py")
        if library in imports(path)
    }
    assert users <= {package}


def imports(path: Path) -> set[str]:
    """Top-level names that a file imports anywhere."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_the_views_import_no_screen_library_and_do_no_input_or_output() -> None:
    outside = {"textual", "asyncio", "subprocess", "os", "socket", "pathlib", "time", "httpx2", "daemon"}
    for path in (ROOT / "console" / "views").glob("*.py"):
        assert imports(path) & outside == set(), path.name
