"""The evaluator where only torch, triton, numpy, scipy and PyYAML are installed, and a judge that never loads torch."""

import json
import subprocess
import sys
from pathlib import Path

from judge_samples import HONEST, cache_directory, write_module

from evaluator.records import Result, Status, decode

ROOT = Path(__file__).resolve().parents[2]
BLOCK = """
import sys

ABSENT = set('''
    msgspec typer textual starlette structlog anthropic aiosqlite watchfiles platformdirs rich uvicorn httpx2 plotext pydantic
    state agents daemon evidence console
'''.split())


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
"""
JUDGE = (
    BLOCK
    + """
from evaluator.__main__ import main

code = main(sys.argv[1:])
assert "torch" not in sys.modules, "the judge loaded torch"
sys.exit(code)
"""
)
MODULES = (
    BLOCK
    + """
import importlib
import pkgutil

import evaluator
import problems

for package in (problems, evaluator):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        skipped = ("problems.builtin", "problems.compatibility", "evaluator.qualification.controls", "evaluator.qualification.naive_main")
        if not found.name.startswith(skipped) and not found.name.endswith((".importer", ".launch")):
            importlib.import_module(found.name)
print(sorted(ABSENT & set(sys.modules)))
"""
)


def python(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_candidate_is_checked_on_a_bare_host(tmp_path, tmp_path_factory):
    (tmp_path / "candidate.py").write_text(HONEST, encoding="utf-8")
    arguments = [
        "check",
        write_module(tmp_path),
        tmp_path / "candidate.py",
        "--seeds",
        "1",
        "--json",
        "--cache",
        cache_directory(tmp_path_factory),
    ]
    done = python(JUDGE, *arguments)
    assert done.returncode == 0, done.stderr
    assert decode(Result, json.loads(done.stdout.splitlines()[-1])).status is Status.OK


def test_every_module_of_both_packages_can_be_imported_there():
    """The trusted process included, which is started with a path of its own."""
    done = python(MODULES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
