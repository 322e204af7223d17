"""Finding a problem by key or path.

    builtin:<name>     written for this project, checked against MANIFEST.sha256 on every load
    kernel:<id>        KernelBench at the pinned revision, once imported
    a path             a KernelBench module, or a GPU MODE task folder (or its task.yml)

Invariant: loads no torch and runs nothing of the problem. `load(..., expected_sha256=...)` raises
ProblemChanged when the bytes are not the ones fixed earlier.
Not for: tensors (`problems.workload`).
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from problems import files, gpumode, kernelbench, manifest, suites
from problems.errors import BadProblem, UnknownProblem
from problems.model import Case, Problem

BUILTIN = Path(__file__).resolve().parent / "builtin"


def load(key_or_path: str, *, expected_sha256: str | None = None, kernelbench_root: Path | None = None) -> Problem:
    """The problem with this key or path.

    Raises:
        UnknownProblem: nothing has this name; the hint has near ones.
        BadProblem: it is not a problem; the message says where and why.
        ProblemChanged: its bytes differ from the manifest or from `expected_sha256`.
    """
    scheme, separator, name = key_or_path.partition(":")
    if separator and scheme == "builtin":
        problem = _load_builtin(name)
    elif separator and scheme == "kernel":
        problem = _load_suite(name, kernelbench_root)
    else:
        problem = _load_path(key_or_path, kernelbench_root)
    if expected_sha256 is not None:
        files.require_digest(problem.key, problem.sha256, expected_sha256)
    return problem


def builtin_keys() -> list[str]:
    """Keys of every built-in problem, sorted."""
    modules = [path.stem for path in BUILTIN.glob("*.py") if path.stem != "__init__"]
    folders = [path.parent.name for path in BUILTIN.glob("*/task.yml")]
    return sorted(f"builtin:{name}" for name in (*modules, *folders))


def robustness_cases(problem: Problem, device: str) -> tuple[Case, ...]:
    """Cases at sizes other than the benchmark's; empty where the problem declares none."""
    return problem.cases(device, kind="test")


def source_text(problem: Problem) -> str:
    """What a solver reads: the reference's source, then the benchmark cases and the tolerance."""
    texts = files.read_all(problem.sources)
    files.require_digest(problem.key, files.digest(texts), problem.sha256)
    names = (problem.root.name,) if problem.format == "kernelbench" else ("reference.py", "task.py")
    shown = "\n".join(f"# file: {name}\n{texts[name].rstrip()}\n" for name in names)
    words = problem.description.splitlines() if problem.format == "gpumode" else []
    about = f"# {problem.title}\n" + "".join(f"# {line}".rstrip() + "\n" for line in words)
    return f"{about}\n{shown}\n{_facts(problem)}"


def _facts(problem: Problem) -> str:
    lines = [f"# answer with: {problem.entry}"]
    for device, cases in problem.cases_by_device.items():
        lines += [f"# {device} benchmark {c.name}: {json.dumps(dict(c.params))}" for c in cases if c.kind == "benchmark"]
    if problem.format == "kernelbench":
        lines.append(f"# tolerance: |error| <= {problem.atol:g} + {problem.rtol:g} * |expected|")
        lines.append("# parameters: " + ("constant between calls" if problem.parameters_constant else "may change between calls"))
    else:
        lines.append("# tolerance: the folder's own check_implementation")
    return "\n".join(lines) + "\n"


def _load_builtin(name: str) -> Problem:
    key = f"builtin:{name}"
    if key not in builtin_keys():
        raise _unknown(key, builtin_keys())
    module = BUILTIN / f"{name}.py"
    if module.is_file():
        manifest.check(source.path for source in kernelbench.sources(module))
        return kernelbench.parse(module, key=key, builtin=True)
    manifest.check([BUILTIN / name / "task.yml"])
    problem = gpumode.parse(BUILTIN / name, key=key, builtin=True)
    manifest.check(problem.files)
    return problem


def _load_suite(name: str, root: Path | None) -> Problem:
    if name not in suites.pinned():
        raise _unknown(f"kernel:{name}", [f"kernel:{known}" for known in suites.pinned()])
    return kernelbench.parse(suites.suite_file(name, root), key=f"kernel:{name}")


def _load_path(text: str, root: Path | None) -> Problem:
    try:
        path = Path(text).expanduser().resolve()
        exists = bool(text) and path.exists()
    except (OSError, RuntimeError, ValueError):
        exists = False
    if not exists:
        raise _unknown(text, [*builtin_keys(), *suites.suite_keys(root)])
    if path.name == "task.yml":
        path = path.parent
    if path.is_dir():
        return gpumode.parse(path, key=str(path))
    if path.suffix != ".py":
        files.read_text(path)
        raise BadProblem(f"{path} is not a Python module", "give a KernelBench module (.py) or a GPU MODE task folder")
    return kernelbench.parse(path, key=str(path))


def _unknown(name: str, keys: list[str]) -> UnknownProblem:
    bare = {key.split(":", 1)[1]: key for key in keys}
    wanted = name.split(":", 1)[-1].lower()
    looks_like_a_path = "/" in name or name.endswith((".py", ".yml"))
    near = [bare[found] for found in difflib.get_close_matches(wanted, list(bare), n=3, cutoff=0.5)]
    beside = _near_files(Path(name)) if looks_like_a_path else []
    if beside or near:
        hint = "did you mean " + " or ".join(beside or near) + "?"
    else:
        hint = "known problems: " + ", ".join(builtin_keys()) + ", or the path of your own"
    what = f"no such file or folder: {name[:200]}" if looks_like_a_path and not near else f"no problem {name[:200]!r}"
    return UnknownProblem(what, hint)


def _near_files(path: Path) -> list[str]:
    """Files beside a path that does not exist, with names like its own."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_dir() or entry.suffix == path.suffix]
    except OSError:
        return []
    return [str(path.parent / found) for found in difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)]
