"""PROFILE: what a candidate spends its time on, case by case, as its own process tells it.

For whoever writes the candidate. A wrong candidate is profiled as well as a right one.
Not for: correctness, or for any time that counts.
"""

from __future__ import annotations

from contextlib import closing

from evaluator.judge.candidate import prepare_candidate
from evaluator.judge.correctness import prepare
from evaluator.judge.evaluation import open_case
from evaluator.judge.outcome import Refusal
from evaluator.judge.setting import Setting
from evaluator.records import Profile, Status

CALLS = 10


def profile(setting: Setting) -> Profile:
    """Profile the job's candidate on every case; raises its refusal."""
    setting.start_trusted()
    prepared = prepare_candidate(setting)
    if prepared.interpreted:
        raise Refusal(Status.NO_CUSTOM_KERNEL, "on a CPU device a Triton source runs in an interpreter: there is nothing to profile")
    calls = int(setting.job.options.get("calls", CALLS))
    bench = setting.bench()
    cases = []
    with closing(setting.candidate_runner(prepared.build, prepared.source, name="candidate")) as candidate:
        for name in setting.cases():
            setting.progress("profile", f"case {name}")
            prepare(bench, candidate, open_case(setting, bench, name))
            slot = bench.write_inputs(candidate, flush=False)
            bench.call(candidate, slot)
            cases.append(candidate.profiled(name, slot=slot, calls=calls))
    return Profile(calls=calls, cases=tuple(cases))
