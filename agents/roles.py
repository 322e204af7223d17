"""What each role is: its system prompt, its tools, its limits.

Invariant: a tool is made for one agent; no role gets another's tools.
Not for: what tools do (`agents.tools`) or when agents start (`agents.orchestrator`).
"""

from __future__ import annotations

from agents.conversation import Role
from agents.errors import AgentsError
from agents.prompting import prompt_facts, system_prompt
from agents.tools.candidate import make_check, make_evaluate_own, make_submit_candidate
from agents.tools.desk import Desk
from agents.tools.dispatch import make_dispatch_idea
from agents.tools.finish import make_finish_ideas, make_finish_search
from agents.tools.launch import make_launch_worker
from agents.tools.measure import make_evaluate, make_request_ab, make_robustness
from agents.tools.propose import make_propose
from agents.tools.read import make_read_experiment, make_read_record
from agents.tools.reconcile import make_reconcile
from agents.tools.report import make_report
from agents.tools.retain import make_bank, make_promote
from agents.tools.tool import Toolbox, toolbox
from agents.tools.waiting import make_wait
from agents.tools.world import make_edit_world_model


def role_of(name: str, desk: Desk) -> Role:
    """The role `name` for the agent at `desk`."""
    limits = {"orchestrator": desk.settings.orchestrator_turns, "idea": desk.settings.idea_turns, "worker": desk.settings.worker_turns}
    makers = {"orchestrator": _orchestrator, "idea": _idea, "worker": _worker}
    if name not in makers:
        raise AgentsError(f"there is no role `{name}` in this version", f"there are: {', '.join(makers)}")
    return Role(name=name, system=system_prompt(name, prompt_facts(desk.port.state)), tools=makers[name](desk), max_turns=limits[name])


def _orchestrator(desk: Desk) -> Toolbox:
    return toolbox(
        make_dispatch_idea(desk),
        make_launch_worker(desk),
        make_wait(desk),
        make_evaluate(desk),
        make_robustness(desk),
        make_request_ab(desk),
        make_read_experiment(desk),
        make_reconcile(desk),
        make_edit_world_model(desk),
        make_bank(desk),
        make_promote(desk),
        make_read_record(desk),
        make_finish_search(desk),
    )


def _idea(desk: Desk) -> Toolbox:
    return toolbox(make_propose(desk), make_finish_ideas(desk))


def _worker(desk: Desk) -> Toolbox:
    own = toolbox(make_submit_candidate(desk), make_check(desk), make_report(desk))
    return {**own, **toolbox(make_evaluate_own(desk))} if desk.settings.workers_evaluate else own
