"""CHECK: build and correctness on seeds of its own; never a protected figure.

For agents and people who want to know what is wrong before they spend a measurement. The seeds are
drawn anew and have nothing to do with an evaluation's.
Not for: speed, or for a verdict that counts.
"""

from __future__ import annotations

from contextlib import closing

from evaluator.judge.candidate import prepare_candidate
from evaluator.judge.evaluation import check_candidate
from evaluator.judge.setting import Setting
from evaluator.records import Evaluation


def check(setting: Setting) -> Evaluation:
    """Correctness of the job's candidate on every case; raises its refusal."""
    setting.start_trusted()
    prepared = prepare_candidate(setting)
    setting.spares().expect(2)  # candidate and blanked
    bench = setting.bench()
    with closing(setting.candidate_runner(prepared.build, prepared.source, name="candidate")) as candidate:
        checks = check_candidate(setting, bench, prepared, candidate)
    return Evaluation(
        correct=True,
        fast1=False,
        fast1_raw=False,
        speedup=None,
        speedup_ci=None,
        speedup_bound=None,
        score=0.0,
        checks=tuple(checks),
        flags=(*prepared.flags, "checked only: nothing was timed"),
    )
