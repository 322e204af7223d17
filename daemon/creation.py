"""Making a new run: everything is checked before anything is written.

Invariant: a run exists from the moment its first record is durable; what a kill leaves before that is
an empty journal, which no list shows.
Not for: starting its search.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agents.clients.opening import open_client
from daemon import configuration, gate
from daemon.errors import BadRequest
from daemon.orders import Order
from problems import registry
from problems.model import Problem
from state.events import RunCreated
from state.files import RunFiles, atomic_write, new_run_id

TITLE_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What a client asks for."""

    problem: str
    model: str | None = None
    session: str | None = None
    title: str | None = None
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run that can be made."""

    config: dict[str, Any]
    created: RunCreated


def token_of(order: Order) -> str:
    """The end of the id of the run that this order makes: how an order sent twice finds its run."""
    return hashlib.sha256(order.key.encode()).hexdigest()[:12]


async def plan(asked: NewRun, *, order: Order, devices: Collection[str]) -> Plan:
    """Check the request; ProblemError, AgentsError or BadRequest says what is wrong with it."""
    config = configuration.resolve(
        problem=asked.problem, model=asked.model, session=asked.session, title=asked.title, settings=asked.settings
    )
    device = str(config["run"]["device"])
    if device not in devices:
        raise BadRequest(f"there is no device {device!r} here", f"devices of this daemon: {', '.join(sorted(devices))}")
    problem = await asyncio.to_thread(registry.load, asked.problem)
    await asyncio.to_thread(open_client, config)
    cases = [case.name for case in problem.cases(device)]
    if not cases:
        raise BadRequest(f"problem {problem.key} has no benchmark case for device {device}")
    config["run"]["problem"] = problem.key
    config["run"]["title"] = (config["run"]["title"] or problem.title)[:TITLE_LIMIT]
    return Plan(config=config, created=_created(problem, config, cases=cases, order=order))


def make(files: RunFiles, plan: Plan) -> None:
    """Make the run's directories and write its configuration."""
    files.create()
    atomic_write(files.config, configuration.to_toml(plan.config))


def run_id(plan: Plan, order: Order) -> str:
    """An id for the new run."""
    return new_run_id(plan.created.problem, now=datetime.datetime.now(datetime.UTC), token=token_of(order))


def _created(problem: Problem, config: dict[str, Any], *, cases: list[str], order: Order) -> RunCreated:
    return RunCreated(
        title=config["run"]["title"],
        problem=problem.key,
        problem_sha256=problem.sha256,
        problem_title=problem.title,
        cases=cases,
        device=config["run"]["device"],
        model=config["agents"]["model"],
        profile=config["run"]["profile"],
        gate=gate.NAME,
        config=config,
        uid=order.uid,
        cause=order.cause,
    )
