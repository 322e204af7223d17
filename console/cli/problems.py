"""`problems list|show|verify`: what there is to be made fast.

Invariant: no problem's code is run; `verify` reads every file against the manifest.
Not for: importing suites.
"""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli import output
from console.cli.options import AsJson, Problem
from console.errors import Explained, explain
from console.views.doc import Column, Line, Span, header, heading, line, pair, row_of, verbatim
from console.views.marks import Mark

COLUMNS = (
    Column(title="problem", width=24),
    Column(title="format", width=12, rank=1),
    Column(title="cpu cases", width=9, right=True),
    Column(title="gpu cases", width=9, right=True, rank=2),
    Column(title="title", width=24, grows=True),
)


def register(app: typer.Typer) -> None:
    """Add the family."""
    family = typer.Typer(help="Problems: list, show, verify.", no_args_is_help=True, rich_markup_mode=None)
    family.command("list")(list_problems)
    family.command("show")(show)
    family.command("verify")(verify)
    app.add_typer(family, name="problems")


def list_problems(as_json: AsJson = False) -> None:
    """List the built-in problems."""
    from problems.registry import builtin_keys, load

    width = output.width()
    rows: list[Line] = []
    data: list[dict[str, object]] = []
    code = 0
    for key in builtin_keys():
        try:
            p = load(key)
        except Exception as error:
            known = _known(error)
            rows.append(line(Mark("✗", "not ok", "bad").span, "  ", (f"{key:<26} ", "strong"), f"{known.message}. {known.hint}"))
            data.append({"problem": key, "error": known.message})
            code = max(code, known.code)
            continue
        cells = [Span(p.key, "strong"), Span(p.format), Span(str(len(p.cases("cpu")))), Span(str(len(p.cases("cuda")))), Span(p.title)]
        rows.append(row_of(cells, COLUMNS, width=width))
        cases = [c.name for c in p.cases("cpu")]
        data.append({"problem": p.key, "title": p.title, "format": p.format, "sha256": p.sha256, "cases": cases})
    output.answer([header(COLUMNS, width=width), *rows], {"problems": data}, as_json=as_json)
    raise typer.Exit(code)


def show(problem: Problem, as_json: AsJson = False) -> None:
    """Show one problem: its facts and the source that an agent reads."""
    from problems.registry import load, source_text

    found = load(problem)
    text = source_text(found)
    cases = {device: [c.name for c in found.cases(device)] for device in ("cpu", "cuda")}
    rows: list[Line] = [
        line((f"{found.key}  ", "heading"), found.title),
        pair("format", f"{found.format}, a candidate defines {found.entry}"),
        pair("tolerance", f"atol {found.atol:g}, rtol {found.rtol:g}"),
        pair("sha256", found.sha256),
        *(pair(f"cases {device}", ", ".join(names) or "none") for device, names in cases.items()),
        heading("source"),
        *verbatim(text),
    ]
    data = {
        "problem": found.key,
        "title": found.title,
        "format": found.format,
        "entry": found.entry,
        "atol": found.atol,
        "rtol": found.rtol,
        "sha256": found.sha256,
        "cases": cases,
        "source": text,
    }
    output.answer(rows, data, as_json=as_json)


def verify(
    problem: Annotated[list[str] | None, typer.Argument(metavar="[PROBLEM]...", help="Without any, every built-in one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check problem files against the manifest. Exits 3 when one changed or is missing."""
    from problems import manifest
    from problems.registry import builtin_keys, load

    rows: list[Line] = []
    data: list[dict[str, object]] = []
    code = 0
    for key in problem or builtin_keys():
        try:
            sha256, message = load(key).sha256, "as in the manifest" if key.startswith("builtin:") else "readable; not in the manifest"
        except Exception as error:
            known = _known(error)
            sha256, message, code = "", f"{known.message}. {known.hint}", max(code, known.code)
        mark = Mark("✓", "ok", "good") if sha256 else Mark("✗", "not ok", "bad")
        rows.append(line(mark.span, "  ", (f"{key:<26} ", "strong"), f"{sha256[:10]}  {message}"))
        data.append({"problem": key, "ok": bool(sha256), "sha256": sha256, "message": message})
    if not problem and code == 0:
        try:
            manifest.verify()
        except Exception as error:
            known = _known(error)
            code = known.code
            rows.append(line(Mark("✗", "not ok", "bad").span, "  ", (f"{'manifest':<26} ", "strong"), f"{known.message}. {known.hint}"))
            data.append({"problem": "manifest", "ok": False, "sha256": "", "message": f"{known.message}. {known.hint}"})
    output.answer(rows, {"ok": code == 0, "problems": data}, as_json=as_json)
    raise typer.Exit(code)


def _known(error: Exception) -> Explained:
    """What an error of ours says; any other one is raised again."""
    known = explain(error)
    if known is None:
        raise error
    return known
