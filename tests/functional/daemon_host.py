"""`python -m daemon` with the stand-in search instead of agents; for tests, all else is the real thing.

Needs the checkout and this folder on PYTHONPATH.
"""

from __future__ import annotations

import functools

import typer
from stand_in import search

import daemon.__main__ as program

program.Settings = functools.partial(program.Settings, search=search)  # type: ignore[misc, assignment]

if __name__ == "__main__":
    typer.run(program.main)
