"""The head of a run's home screen: what it works on, how far it is, what it does now.

Invariant: `requested`, `draining` and `paused` are different words, what is in flight is listed,
and the gate's name and the qualification are always there.
Not for: the experiment table (`console.views.experiments`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.views import marks, numbers
from console.views.doc import Line, Part, line
from state.model import InFlight, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Latest progress of one running job: a gauge, not a record."""

    request: str
    step: str
    detail: str = ""
    done: int | None = None
    total: int | None = None


def gauges_of(values: Mapping[str, Any]) -> dict[str, Gauge]:
    """Read the progress of the running job out of the daemon's latest values, by request id."""
    job = values.get("job")
    if not isinstance(job, Mapping) or not isinstance(job.get("job"), str):
        return {}
    done, total = job.get("done"), job.get("total")
    gauge = Gauge(
        request=job["job"],
        step=str(job.get("step", "")),
        detail=str(job.get("detail", "")),
        done=done if isinstance(done, int) else None,
        total=total if isinstance(total, int) else None,
    )
    return {gauge.request: gauge}


def headline(state: RunState, gauges: dict[str, Gauge] | None = None) -> list[Line]:
    """Build the five lines above the experiment table."""
    return [title(state), speed(state), counts(state), standing(state), now(state, gauges or {})]


def title(state: RunState) -> Line:
    """Build problem, device and model."""
    what = state.problem_title or state.title
    tail = f" · {what}" if what and what != state.problem else ""
    return line((state.problem or "no run yet", "heading"), tail, (f" · {state.device} · model {state.model}", "muted"))


def speed(state: RunState) -> Line:
    """Build baseline, compiled, champion and speed-up."""
    champion = numbers.duration_us(state.champion_us) if state.champion else "none yet"
    tone: Part = (numbers.times(state.speedup), "good" if state.speedup > 1 else "plain") if state.champion else (numbers.DASH, "muted")
    return line(
        ("baseline ", "muted"),
        numbers.duration_us(state.baseline_us),
        ("  compiled ", "muted"),
        numbers.duration_us(state.compiled_us),
        ("  champion ", "muted"),
        champion,
        ("  speed-up ", "muted"),
        tone,
    )


def counts(state: RunState) -> Line:
    """Build promotions, experiments, tokens and cost."""
    return line(
        ("promotions ", "muted"),
        str(len(state.promotions)),
        ("  experiments ", "muted"),
        str(len(state.experiments)),
        ("  banked ", "muted"),
        str(len(state.bank)),
        ("  tokens ", "muted"),
        f"{numbers.count(state.tokens_in)} in {numbers.count(state.tokens_out)} out",
        ("  cost ", "muted"),
        numbers.money(state.cost_usd),
    )


def standing(state: RunState) -> Line:
    """Build the gate's name and what qualification established."""
    known = {True: marks.Mark("✓", "qualified", "good"), False: marks.Mark("✗", "not qualified", "bad")}
    mark = known.get(bool(state.qualified)) if state.qualified is not None else marks.Mark("?", "not qualified yet", "warn")
    words = f" ({state.qualification})" if state.qualification else ""
    assert mark is not None
    return line(("gate ", "muted"), state.gate or numbers.DASH, ("  judge ", "muted"), mark.span, words)


def now(state: RunState, gauges: dict[str, Gauge]) -> Line:
    """Build the run's state, what was asked of it, and what is in flight."""
    mark = marks.run(state.status)
    parts: list[Part] = [mark.span]
    if state.requested:
        parts.append((f"  {state.requested} requested", "warn"))
    if state.status_reason:
        parts.append((f" ({state.status_reason})", "muted"))
    flying = [flight(job, gauges.get(job.request)) for job in state.in_flight]
    parts.append(("  in flight ", "muted"))
    parts.append(", ".join(flying) if flying else "nothing")
    parts += [(f"  waiting: {words}", "warn") for words in waits(gauges)]
    return line(*parts)


def waits(gauges: Mapping[str, Gauge]) -> list[str]:
    """Say what jobs wait for that are not started yet, e.g. a device that somebody else holds."""
    return [gauge.detail or "for the device" for gauge in gauges.values() if gauge.step == "waiting"]


def flight(job: InFlight, gauge: Gauge | None) -> str:
    """Say what one running job is and how far it got."""
    who = f"{job.experiment} " if job.experiment else ""
    if gauge is None:
        return f"{who}{job_word(job.kind)}"
    far = f" {gauge.done}/{gauge.total}" if gauge.done is not None and gauge.total else ""
    step = "" if gauge.step == job.kind else f": {gauge.step}"
    return f"{who}{job_word(job.kind)}{step}{far}"


def job_word(kind: str) -> str:
    """Name a job kind as the screens do."""
    return {"ab": "A/B", "evaluate": "evaluation", "qualify": "qualification"}.get(kind, kind)
