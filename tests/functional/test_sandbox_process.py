"""Starting, stopping, reading, ending: the handle of one sandboxed process, with real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from evaluator.errors import EnvironmentFault
from evaluator.protocol.freeze import Freezer
from evaluator.sandbox.command import Bind
from evaluator.sandbox.limits import GIB, MIB, Limits
from evaluator.sandbox.probe import require_sandbox
from evaluator.sandbox.process import SandboxProcess


@pytest.fixture(scope="module")
def sandbox():
    return require_sandbox()


@pytest.fixture
def start(sandbox, tmp_path):
    running = []

    def begin(text, profile="run", **options):
        script = tmp_path / f"script{len(running)}.py"
        script.write_text(textwrap.dedent(text))
        script.chmod(0o644)
        argv = ["/s.py"] if profile == "run" else [sys.executable, "-I", "/s.py"]
        process = SandboxProcess.start(argv, sandbox=sandbox, profile=profile, binds=[Bind(source=script, target="/s.py")], **options)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()


def printed(process, count=1):
    deadline = time.monotonic() + 20
    while len(lines := process.stdout.splitlines()) < count:
        assert time.monotonic() < deadline, process.stderr
        assert process.poll() is None, process.stderr
        time.sleep(0.005)
    return lines


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def freeze(process):
    """Stop it as the judge does between two calls; returns when every thread is seen stopped."""
    freezer = Freezer(process.first_pid)
    freezer.stop()
    freezer.confirm()
    freezer.close()


SPINNING = """
    import array, threading
    counters = array.array("q", [0, 0, 0, 0])
    def spin(i):
        while True:
            counters[i] += 1
    for i in range(1, 4):
        threading.Thread(target=spin, args=(i,), daemon=True).start()
    print(counters.buffer_info()[0], flush=True)
    spin(0)
"""


def test_every_process_of_a_build_sandbox_ends_with_it(start):
    process = start(
        """
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                break
        print(os.getpid(), flush=True)
        while True:
            pass
        """,
        "build",
    )
    printed(process, 4)
    assert len(process.members()) == 5, "the namespace's init, the first process, three children"
    members = process.members()
    process.kill()
    assert all(gone(pid) for pid in members)


def test_the_first_pid_is_the_runner_on_the_host(start):
    process = start("print('up', flush=True)\nwhile True: pass")
    printed(process)
    assert process.members() == [process.first_pid]
    assert b"/s.py" in Path(f"/proc/{process.first_pid}/cmdline").read_bytes()
    assert process.resident_bytes() > MIB


@pytest.mark.parametrize(
    ("text", "reason", "code", "words"),
    [
        ("raise SystemExit(0)", "exit", 0, "ended with exit code 0"),
        ("raise SystemExit(3)", "exit", 3, "ended with exit code 3"),
        ("1 / 0", "exit", 1, "ended with exit code 1"),
        ("import ctypes; ctypes.string_at(8)", "signal", 128 + signal.SIGSEGV, "crashed with SIGSEGV"),
    ],
)
def test_how_it_ended(start, text, reason, code, words):
    ended = start(text).wait(30)
    assert ended is not None
    assert (ended.reason, ended.code, ended.words(), ended.ok) == (reason, code, words, code == 0)


def test_a_deadline_leaves_it_running_and_kill_ends_it(start):
    process = start("import time\nprint('up', flush=True)\ntime.sleep(600)")
    printed(process)
    assert process.wait(0.05) is None
    assert process.poll() is None
    pid = process.first_pid
    process.kill()
    assert gone(pid)
    ended = process.poll()
    assert ended is not None
    assert ended.reason == "killed"


def test_killing_a_stopped_one(start):
    process = start(SPINNING)
    printed(process)
    freeze(process)
    process.kill()
    assert gone(process.first_pid)


def test_too_much_memory(start):
    limits = Limits(resident_bytes=200 * MIB)
    ended = start("import time\ndata = bytearray(b'1') * (400 << 20)\ntime.sleep(60)", limits=limits).wait(30)
    assert ended is not None
    assert (ended.reason, ended.words()) == ("memory", "used more memory than it may")


def test_too_much_address_space_is_an_error_inside(start):
    process = start("data = bytearray(4 << 30)", limits=Limits(address_space_bytes=GIB))
    ended = process.wait(30)
    assert ended is not None
    assert (ended.reason, ended.code) == ("exit", 1)
    assert "MemoryError" in process.stderr


def test_endless_output_is_drained_and_bounded(start):
    process = start(
        """
        import sys
        print("first")
        for _ in range(2000):
            sys.stdout.write("x" * 10000)
        sys.stderr.write("\\x1b[31mred\\x1b[0m \\u202egnp.exe\\n")
        print("last")
        """,
        limits=Limits(output_bytes=10_000),
    )
    ended = process.wait(60)
    assert ended is not None
    assert ended.ok
    assert process.stdout.startswith("firstx") is False
    assert process.stdout.startswith("first\nx")
    assert process.stdout.endswith("last\n")
    assert "bytes left out" in process.stdout
    assert len(process.stdout) < 10_100
    assert process.stderr == "red gnp.exe\n"


def test_descriptors_and_environment_are_handed_over(start):
    read, write = os.pipe()
    process = start(f"import os\nos.write({write}, os.environ['WORD'].encode())", pass_fds=[write], env={"WORD": "hello"})
    os.close(write)
    assert os.read(read, 100) == b"hello"
    os.close(read)
    ended = process.wait(10)
    assert ended is not None
    assert ended.ok


def test_only_the_descriptors_that_were_passed_are_open(start):
    process = start("import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd')))")
    process.wait(10)
    assert process.stdout.strip() == "[0, 1, 2, 3]", "the standard ones and the listing's own"


def test_a_target_that_does_not_exist_is_not_the_environments_fault(sandbox):
    with SandboxProcess.start(["/nowhere.py"], sandbox=sandbox, profile="run") as process:
        ended = process.wait(10)
        assert ended is not None
        assert (ended.reason, ended.code) == ("exit", 1)
        assert "No such file" in process.stderr


def test_a_mount_that_cannot_be_made_is_an_environment_fault(sandbox, tmp_path):
    with pytest.raises(EnvironmentFault, match=r"could not be started: .*none") as caught:
        SandboxProcess.start(["/x.py"], sandbox=sandbox, profile="run", binds=[Bind(source=tmp_path / "none", target="/in")])
    assert caught.value.code == 3


def test_no_descriptor_is_left_open(start):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        process = start("pass")
        process.wait(10)
        process.kill()
    assert len(os.listdir("/proc/self/fd")) == before


JUDGE = """
import sys
from pathlib import Path
from evaluator.protocol.freeze import Freezer
from evaluator.sandbox.command import Bind
from evaluator.sandbox.probe import require_sandbox
from evaluator.sandbox.process import SandboxProcess
profile, script = sys.argv[1:]
argv = ["/s.py"] if profile == "run" else [sys.executable, "-I", "/s.py"]
info = require_sandbox()
print("ready", flush=True)
process = SandboxProcess.start(argv, sandbox=info, profile=profile, binds=[Bind(source=Path(script), target="/s.py")])
print(process.first_pid, *process.members(), flush=True)
if profile == "run":
    freezer = Freezer(process.first_pid)
    freezer.stop()
    freezer.confirm()
process.wait(600)
"""


def sandboxes_with(script):
    """Host pids of everything whose command line names the marker script."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(script).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return found


def wait_until_gone(script, seconds=10):
    deadline = time.monotonic() + seconds
    while left := sandboxes_with(script):
        assert time.monotonic() < deadline, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
        time.sleep(0.01)


@pytest.mark.parametrize("profile", ["run", "build"])
def test_nothing_survives_the_judge(tmp_path, profile):
    """kill -9 of the judge while its sandbox is up, stopped under `run`, and with a grandchild in its own session under `build`."""
    script = tmp_path / "marker.py"
    text = "import os, time\n"
    if profile == "build":
        text += "if os.fork() == 0:\n    os.setsid()\n    os.fork()\n"
    script.write_text(text + "time.sleep(600)\n")
    script.chmod(0o644)
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, profile, script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert judge.stdout is not None
    judge.stdout.readline()
    pids = [int(word) for word in judge.stdout.readline().split()]
    assert pids
    assert not any(gone(pid) for pid in pids)
    judge.kill()
    judge.wait()
    judge.stdout.close()
    wait_until_gone(script)
    deadline = time.monotonic() + 10
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_nothing_survives_a_judge_killed_while_it_starts_a_sandbox(tmp_path):
    script = tmp_path / "marker.py"
    script.write_text("import time\ntime.sleep(600)\n")
    script.chmod(0o644)
    for delay_ms in range(0, 48, 3):
        judge = subprocess.Popen(
            [sys.executable, "-c", JUDGE, "run", script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        assert judge.stdout is not None
        judge.stdout.readline()
        time.sleep(delay_ms / 1000)
        judge.kill()
        judge.wait()
        judge.stdout.close()
    wait_until_gone(script)


def test_a_page_shared_by_descriptor_stays_readable_while_stopped(start):
    """The judge's own mapping of a descriptor passed in keeps its values while the sandbox is stopped."""
    descriptor = os.memfd_create("page")
    os.ftruncate(descriptor, 4096)
    process = start(
        f"""
        import mmap
        page = mmap.mmap({descriptor}, 4096)
        print("up", flush=True)
        n = 0
        while True:
            n += 1
            page[:8] = n.to_bytes(8, "little")
        """,
        pass_fds=[descriptor],
    )
    printed(process)
    freeze(process)
    first = os.pread(descriptor, 8, 0)
    time.sleep(0.02)
    assert os.pread(descriptor, 8, 0) == first
    os.close(descriptor)


def test_signals_reach_only_the_namespace(start):
    """A runner that ignores what it can still stops and dies."""
    process = start("""
        import signal
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        print("up", flush=True)
        while True: pass
    """)
    printed(process)
    freeze(process)
    process.kill()
    assert gone(process.first_pid)
