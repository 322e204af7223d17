"""The first message of each agent: what it is asked, and everything it may know to begin with.

A brief is journalled whole (`agent.started.context`), so a conversation is rebuilt without this module.
Idea agents get the problem, the world model and the champion, and nothing of the run's chatter; a worker
gets its one experiment.
Invariant: built from the run's state and stored texts alone; bounded. Not for: rules (`agents.prompts`).
"""

from __future__ import annotations

from agents.bounds import clip
from agents.ports import RunPort
from state.events import Belief, ExperimentOpened

SOURCE_CHARS = 40_000


def search_brief(port: RunPort) -> str:
    """First message of the orchestrator."""
    parts = [f"# Task\nMake `{port.state.problem}` ({port.state.problem_title}) faster. You lead the search.", _facts(port), _problem(port)]
    return _join(*parts, _world_model(port))


def idea_brief(port: RunPort, *, category: str, focus: str) -> str:
    """First message of an idea agent."""
    asked = f"# Task\nPropose ideas of the category `{category}`." + (
        f" Focus: {focus}" if focus else " No focus: look for whatever helps most."
    )
    return _join(asked, _facts(port), _problem(port), _world_model(port), _source(port, "Champion", port.state.champion))


def worker_brief(port: RunPort, opened: ExperimentOpened, *, workers_evaluate: bool) -> str:
    """First message of a worker."""
    idea = port.state.ideas.get(opened.idea)
    asked = f"# Task\nExperiment {opened.experiment}: {opened.title}"
    about = f"## Idea {opened.idea}: {idea.title}\n{idea.rationale}" if idea else ""
    predicted = "## Frozen prediction (speed-up over the champion)\n" + _beliefs(opened.prediction)
    may = "You may ask for a rung 1 evaluation yourself." if workers_evaluate else "The orchestrator evaluates; you check."
    base = _source(port, "Base to start from", opened.base)
    parts = [_source(port, f"Part {name}", port.state.experiments[name].final) for name in opened.parts if name in port.state.experiments]
    return _join(asked, about, predicted, may, _facts(port), _problem(port), base, *parts)


def _facts(port: RunPort) -> str:
    state = port.state
    lines = [
        f"- device: {state.device}, static gate profile: {state.profile}",
        f"- promotion gate: {state.gate}",
        f"- cases: {', '.join(state.cases)}",
    ]
    if state.baseline_us is not None:
        compiled = f", torch.compile {state.compiled_us:.0f} us" if state.compiled_us is not None else ""
        lines.append(f"- baseline: eager {state.baseline_us:.0f} us{compiled} (geometric mean over cases)")
    if state.floor is not None:
        lines.append(f"- measured noise floor: {state.floor:.2%} of the geometric mean")
    lines.append(f"- champion: {state.champion[:12] if state.champion else 'the reference itself'}, {state.speedup:.2f}x over the baseline")
    return "## Facts\n" + "\n".join(lines)


def _problem(port: RunPort) -> str:
    return f"## Problem\n```python\n{clip(port.reference_source(), SOURCE_CHARS)}\n```"


def _world_model(port: RunPort) -> str:
    return f"## World model\n{port.state.world_model_text or '(empty)'}"


def _source(port: RunPort, title: str, sha256: str | None) -> str:
    if sha256 is None:
        return f"## {title}\nThe reference itself (above)."
    return f"## {title} ({sha256[:12]})\n```python\n{clip(port.candidate(sha256), SOURCE_CHARS)}\n```"


def _beliefs(beliefs: list[Belief]) -> str:
    return "\n".join(f"- {b.case}: {b.low:g} to {b.high:g} at {b.level:.0%}; {b.basis}" for b in beliefs)


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
