"""What the real judge prints while it works is what the daemon and the command line read as progress."""

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path

from daemon.executors.output import read_progress
from evaluator.records import Job, JobKind, Progress, Source, dumps, progress_line, read_progress_line

ROOT = Path(__file__).parents[2]


def test_a_line_of_progress_is_read_back_and_nothing_else_is():
    step = Progress(job="kernel|p|e|1", step="timing", detail="case short", done=3, total=9)
    assert read_progress_line(progress_line(step)) == step
    for line in ("", "timing 3/9", "[]", "{}", '{"progress": 3}', '{"progress": {"job": 1}}', json.dumps({"job": "a", "step": "bare"})):
        assert read_progress_line(line) is None


async def test_the_daemon_hears_every_step_of_a_real_job(tmp_path):
    text = "class ModelNew:\n    pass\n"
    source = Source(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)
    job = tmp_path / "job.json"
    job.write_text(dumps(Job(id="kernel|builtin:scan|progress|1", kind=JobKind.CHECK, problem="builtin:scan", candidate=source)))
    command = [sys.executable, "-m", "evaluator", "run", str(job), "--result", str(tmp_path / "result.json"), "--cache", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    heard = []
    await asyncio.wait_for(read_progress(process.stdout, heard.append), 60)
    assert await process.wait() == 0
    assert [step.step for step in heard][:2] == ["integrity", "gate"]
    assert {step.job for step in heard} == {"kernel|builtin:scan|progress|1"}
