"""System prompts: Markdown files under `agents/prompts/`, with `{{name}}` filled in.

Invariant: a prompt never reaches a model with a placeholder left in it; a missing file or an unknown
placeholder is an `AgentsError`. Not for: what changes during a run (`agents.briefs`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from agents.errors import AgentsError
from state.model import RunState

FOLDER = Path(__file__).resolve().parent / "prompts"

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class BadPrompt(AgentsError):
    """A prompt file that is missing or does not fit."""

    code = 3


def system_prompt(name: str, facts: Mapping[str, str], *, folder: Path = FOLDER) -> str:
    """The prompt of a role: `rules.md` where it asks for `{{rules}}`, then `facts`."""
    return _fill(_read(folder, name), {**facts, "rules": _fill(_read(folder, "rules"), facts, name="rules")}, name=name)


def prompt_facts(state: RunState) -> dict[str, str]:
    """What prompts may refer to."""
    return {"device": state.device, "profile": state.profile, "gate": state.gate, "cases": ", ".join(state.cases), "problem": state.problem}


def _read(folder: Path, name: str) -> str:
    path = folder / f"{name}.md"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPrompt(f"the prompt {path} cannot be read ({error})", "reinstall Ratchet or restore the file") from error


def _fill(text: str, facts: Mapping[str, str], *, name: str) -> str:
    unknown = sorted({m[1] for m in _PLACEHOLDER.finditer(text)} - set(facts))
    if unknown:
        raise BadPrompt(f"the prompt {name}.md asks for unknown facts: {', '.join(unknown)}")
    return _PLACEHOLDER.sub(lambda m: facts[m[1]], text)
