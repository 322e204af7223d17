"""What candidate code tries inside a real sandbox, and what it gets."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evaluator.sandbox.command import Bind, environment
from evaluator.sandbox.probe import require_sandbox
from evaluator.sandbox.process import SandboxProcess

EPERM, ENOSYS = 1, 38
PRELUDE = """
import ctypes, errno, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    return 0 if libc.syscall(number, *arguments) != -1 else ctypes.get_errno()
def attempt(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
def answer(**values):
    print(json.dumps(values))
"""
X86_ONLY = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system-call numbers of x86_64")


@pytest.fixture(scope="module")
def sandbox():
    return require_sandbox()


@pytest.fixture
def inside(sandbox, tmp_path):
    def run(text, profile="run", **options):
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(text))
        script.chmod(0o644)
        argv = ["/ratchet/script.py"] if profile == "run" else [sys.executable, "-I", "/ratchet/script.py"]
        binds = [Bind(source=script, target="/ratchet/script.py"), *options.pop("binds", ())]
        with SandboxProcess.start(argv, sandbox=sandbox, profile=profile, binds=binds, **options) as process:
            ended = process.wait(60)
            assert ended is not None
            assert ended.ok, f"{ended}: {process.stderr}"
            return json.loads(process.stdout)

    return run


def test_the_host_is_not_visible(inside, monkeypatch):
    monkeypatch.setenv("OPENAI_SECRET", "do not show")
    seen = inside("""
        answer(
            env=dict(os.environ), root=sorted(os.listdir("/")),
            hidden={p: sorted(os.listdir(p)) for p in ("/home", "/var", "/run", "/work", "/mnt", "/opt", "/srv")},
            tmp=attempt(os.listdir, "/tmp"), dev=sorted(os.listdir("/dev")), etc=sorted(os.listdir("/etc")), host=os.uname().nodename,
        )
    """)
    assert set(seen["env"]) == {*environment({}), "PWD"}
    shown = {Path(p).parts[1] for p in (sys.prefix, sys.base_prefix)}
    for directory, entries in seen["hidden"].items():
        if directory.strip("/") not in shown:
            assert entries == [], directory
    assert set(seen["dev"]) == {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr"}, "no terminals"
    assert set(seen["etc"]) <= {"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd"}
    assert seen["host"] == "sandbox"
    assert "work" not in seen["root"] or seen["hidden"]["/work"] == []


def test_our_own_packages_cannot_be_imported(inside):
    seen = inside("""
        import importlib.util
        ours = ("evaluator", "problems", "state", "agents", "daemon", "evidence", "console")
        answer(found=[n for n in ours if importlib.util.find_spec(n)], path=sys.path)
    """)
    assert seen["found"] == []
    assert str(Path(__file__).parents[2]) not in seen["path"]


def test_only_scratch_is_writable_and_it_is_bounded(inside):
    seen = inside("""
        import sysconfig
        places = ["/", "/usr", "/dev", "/dev/shm", "/etc", "/proc/sys/kernel", "/ratchet", "/tmp", "/home", "/root"]
        places += [sys.prefix, sysconfig.get_paths()["purelib"]]
        refused = {}
        for place in places:
            try:
                open(os.path.join(place, "x"), "w").close()
                refused[place] = "written"
            except OSError as error:
                refused[place] = errno.errorcode[error.errno]
        def fill():
            with open("/scratch/big", "wb") as file:
                while True:
                    file.write(b"0" * (1 << 20))
        sysctl = attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/scratch/x"))
        answer(refused=refused, filled=attempt(fill), size=os.path.getsize("/scratch/big"), sysctl=sysctl)
    """)
    assert set(seen["refused"].values()) <= {"EROFS", "EACCES", "ENOENT", "EPERM"}
    assert seen["filled"] in ("ENOSPC", "EFBIG")
    assert seen["size"] <= 1 << 30
    assert seen["sysctl"] in ("EROFS", "EACCES", "EPERM")


def test_no_privileges(inside):
    seen = inside("""
        status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
        answer(
            uid=os.getuid(), groups=os.getgroups(), caps=[status[n].strip() for n in ("CapInh", "CapPrm", "CapEff", "CapAmb")],
            nnp=status["NoNewPrivs"].strip(), seccomp=status["Seccomp"].strip(), become_root=attempt(os.setuid, 0),
        )
    """)
    assert seen["uid"] == 65534
    assert set(seen["caps"]) == {"0" * 16}
    assert (seen["nnp"], seen["seccomp"]) == ("1", "2")
    assert seen["become_root"] in ("EPERM", "EINVAL"), "EINVAL where root is not even mapped"


def test_no_other_process_and_no_second_one(inside):
    seen = inside("""
        pids = [p for p in os.listdir("/proc") if p.isdigit()]
        answer(
            pid=os.getpid(), pids=pids, fork=attempt(os.fork), spawn=attempt(lambda: os.posix_spawn("/bin/true", ["true"], {})),
            execute=attempt(os.execv, "/bin/true", ["true"]), signal=attempt(os.kill, 2, 0),
        )
    """)
    assert seen["pids"] == [str(seen["pid"])]
    assert seen["fork"] == "EPERM"
    assert seen["spawn"] == "EPERM"
    assert seen["execute"] == "EPERM"
    assert seen["signal"] == "ESRCH"


def test_threads_still_work(inside):
    assert inside("""
        import threading
        done = []
        threads = [threading.Thread(target=done.append, args=(i,)) for i in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        answer(done=sorted(done))
    """) == {"done": list(range(8))}


def test_no_network_and_no_socket_of_the_host(inside, tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0ratchet-test-abstract")
        server.listen()
        seen = inside("""
            def connect():
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect("\\0ratchet-test-abstract")
            inet, netlink = (attempt(socket.socket, family) for family in (socket.AF_INET, socket.AF_NETLINK))
            answer(inet=inet, netlink=netlink, abstract=attempt(connect))
        """)
    assert seen == {"inet": "EPERM", "netlink": "EPERM", "abstract": "ECONNREFUSED"}


@X86_ONLY
@pytest.mark.parametrize("profile", ["run", "build"])
def test_dangerous_calls_are_refused(inside, profile):
    calls = {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "unshare": 272, "setns": 308, "keyctl": 250,
        "bpf": 321,        "perf_event_open": 298, "io_uring_setup": 425, "userfaultfd": 323, "sched_setaffinity": 203, "setpriority": 141,
        "personality": 135,
        "pidfd_getfd": 438, "kexec_load": 246, "init_module": 175, "open_by_handle_at": 304, "syslog": 103, "clock_settime": 227,
        "fsopen": 430,
    }  # fmt: skip
    seen = inside(f"answer(**{{name: call(number, 0, 0, 0, 0, 0, 0) for name, number in {calls}.items()}})", profile)
    assert seen == dict.fromkeys(calls, EPERM)
    assert inside("answer(clone3=call(435, 0, 0))", profile) == {"clone3": ENOSYS}


@X86_ONLY
def test_what_could_wake_a_stopped_process_is_refused(inside):
    seen = inside("""
        read, write = os.pipe()
        import fcntl
        answer(
            timer=call(222, 1, 0, 0), signal_choice=attempt(fcntl.fcntl, read, 10, 18), queue=call(244, 0, 0),
            death=attempt(lambda: os.strerror(ctypes.get_errno()) if libc.prctl(1, 18, 0, 0, 0) == -1 else "set"),
            dumpable=libc.prctl(4, 0, 0, 0, 0), shm=call(29, 0, 4096, 0o600), memfd=call(319, b"x", 0),
        )
    """)
    assert seen["timer"] == seen["queue"] == seen["shm"] == seen["memfd"] == EPERM
    assert seen["signal_choice"] == "EPERM"
    assert seen["death"] == "Operation not permitted"
    assert seen["dumpable"] == -1


@X86_ONLY
def test_a_call_of_another_architecture_kills(sandbox, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)\nprint('alive')\n")
    with SandboxProcess.start(["/s.py"], sandbox=sandbox, profile="run", binds=[Bind(source=script, target="/s.py")]) as process:
        ended = process.wait(30)
        assert ended is not None
        assert (ended.reason, ended.words()) == ("signal", "crashed with SIGSYS")
        assert process.stdout == ""


def test_the_cores_cannot_be_changed(inside):
    core = max(os.sched_getaffinity(0))
    seen = inside(
        """
        answer(cores=sorted(os.sched_getaffinity(0)), change=attempt(os.sched_setaffinity, 0, {0, 1}), nice=attempt(os.nice, 5),
               policy=attempt(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))))
        """,
        affinity={core},
    )
    assert seen == {"cores": [core], "change": "EPERM", "nice": "EPERM", "policy": "EPERM"}


def test_limits_cannot_be_raised(inside):
    seen = inside("""
        import resource
        which = [resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC]
        before = [resource.getrlimit(w) for w in which]
        def up(w, old):
            try:
                resource.setrlimit(w, (old[1] + 1, old[1] + 1))
                return "raised"
            except (ValueError, OSError):
                return "refused"
        answer(before=before, up=[up(w, o) for w, o in zip(which, before)])
    """)
    assert seen["before"] == [[0, 0], [2 << 30, 2 << 30], [1024, 1024], [512, 512]]
    assert set(seen["up"]) == {"refused"}


def test_the_number_of_processes_is_limited_in_the_build_profile(inside):
    seen = inside(
        """
        import time
        count = 0
        try:
            while count < 5000:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                count += 1
            why = "no limit"
        except OSError as error:
            why = errno.errorcode[error.errno]
        answer(count=count, why=why)
        """,
        "build",
    )
    assert seen["why"] == "EAGAIN"
    assert 400 < seen["count"] < 512


def test_the_build_profile_may_run_programs(inside):
    seen = inside(
        """
        import subprocess
        answer(text=subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True).stdout.strip())
        """,
        "build",
    )
    expected = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip()
    assert seen == {"text": expected}


@pytest.mark.parametrize("where", ["tmp", "home"])
def test_environments_below_hidden_directories_work_and_are_masked(tmp_path, where):
    """An environment under /tmp and one under the home directory, each with a copy of our packages installed in it."""
    base = tmp_path if where == "tmp" else Path.home() / f".ratchet-test-{os.getpid()}"
    environment = base / "env"
    try:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        site = next((environment / "lib").glob("python*/site-packages"))
        checkout = Path(__file__).parents[2]
        (site / "other.py").write_text("VALUE = 5\n")
        subprocess.run(["cp", "-r", checkout / "evaluator", site / "evaluator"], check=True)
        program = base / "judge.py"
        program.write_text(
            textwrap.dedent("""
            import sys
            from pathlib import Path
            from evaluator.sandbox.command import Bind
            from evaluator.sandbox.probe import require_sandbox
            from evaluator.sandbox.process import SandboxProcess
            script = Path(sys.argv[1])
            binds = [Bind(source=script, target="/s.py")]
            with SandboxProcess.start(["/s.py"], sandbox=require_sandbox(), profile="run", binds=binds) as p:
                print(p.wait(60), p.stderr, p.stdout)
            """)
        )
        script = base / "script.py"
        script.write_text(
            "import sys, other\ntry:\n    import evaluator.records\n    print('ours is visible')\n"
            "except ImportError:\n    print('masked', other.VALUE, sys.prefix)\n"
        )
        done = subprocess.run([environment / "bin" / "python", "-I", program, script], capture_output=True, text=True, cwd="/")
        assert f"masked 5 {environment}" in done.stdout, done.stdout + done.stderr
        assert "code=0" in done.stdout
    finally:
        if where == "home":
            subprocess.run(["rm", "-rf", base], check=True)
