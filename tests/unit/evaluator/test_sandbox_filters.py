"""The committed filters say what they must, on both architectures: a small interpreter runs them."""

import ctypes.util
import errno
import struct

import pytest

from evaluator.errors import EnvironmentFault
from evaluator.sandbox import seccomp
from evaluator.sandbox.filters import generate

ALLOW, KILL, EPERM, ENOSYS = generate.ALLOW, generate.KILL_PROCESS, generate.ERRNO | errno.EPERM, generate.ERRNO | errno.ENOSYS
X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003
ARCHITECTURE = {"x86_64": X86, "aarch64": ARM}
NUMBERS = {
    "x86_64": {
        "read": 0, "write": 1, "mmap": 9, "futex": 202, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "ptrace": 101,
        "process_vm_readv": 310, "unshare": 272, "mount": 165, "setns": 308, "bpf": 321, "perf_event_open": 298, "keyctl": 250,
        "io_uring_setup": 425, "sched_setaffinity": 203, "setpriority": 141, "sched_setattr": 314, "socket": 41, "ioctl": 16, "clone3": 435,
        "pidfd_getfd": 438, "userfaultfd": 323, "timer_create": 222, "fcntl": 72, "memfd_create": 319, "shmget": 29, "prctl": 157,
        "memfd_secret": 447, "move_mount": 429, "personality": 135, "open_by_handle_at": 304, "seccomp": 317, "mq_notify": 244,
        "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424,
        "timerfd_create": 283,
    },
    "aarch64": {
        "read": 63, "write": 64, "mmap": 222, "futex": 98, "clone": 220, "execve": 221, "execveat": 281, "ptrace": 117,
        "process_vm_readv": 270, "unshare": 97, "mount": 40, "setns": 268, "bpf": 280, "perf_event_open": 241, "keyctl": 219,
        "io_uring_setup": 425, "sched_setaffinity": 122, "setpriority": 140, "sched_setattr": 274, "socket": 198, "ioctl": 29,
        "clone3": 435, "pidfd_getfd": 438, "userfaultfd": 282, "timer_create": 107, "fcntl": 25, "memfd_create": 279, "shmget": 194,
        "prctl": 167,
        "memfd_secret": 447, "move_mount": 429, "personality": 92, "open_by_handle_at": 265, "seccomp": 277, "mq_notify": 184,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "pidfd_send_signal": 424,
        "timerfd_create": 85,
    },
}  # fmt: skip
DENIED = [
    "ptrace", "process_vm_readv", "unshare", "mount", "setns", "bpf", "perf_event_open", "keyctl", "io_uring_setup", "sched_setaffinity",
    "setpriority", "sched_setattr", "pidfd_getfd", "userfaultfd", "memfd_secret", "move_mount", "personality", "open_by_handle_at",
]  # fmt: skip
RUN_ONLY = ["timer_create", "timerfd_create", "memfd_create", "shmget", "mq_notify"]
MACHINES = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


def verdict(program: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = X86) -> int:
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(arguments + (0,) * 6)[:6])
    code = [struct.unpack_from("=HBBI", program, i) for i in range(0, len(program), 8)]
    at, register = 0, 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        if operation == 0x20:
            register = struct.unpack_from("=I", data, k)[0]
        elif operation == 0x54:
            register &= k
        elif operation == 0x05:
            at += k
        elif operation == 0x06:
            return k
        else:
            true = {0x15: register == k, 0x25: register > k, 0x35: register >= k, 0x45: bool(register & k)}[operation]
            at += yes if true else no


def ask(profile: str, machine: str, name: str, *arguments: int) -> int:
    program = seccomp.filter_path(profile, machine).read_bytes()
    return verdict(program, NUMBERS[machine][name], arguments, ARCHITECTURE[machine])


@pytest.mark.skipif(ctypes.util.find_library("seccomp") is None, reason="libseccomp is not installed")
@MACHINES
@pytest.mark.parametrize("profile", generate.PROFILES)
def test_committed_bytes_are_what_the_generator_makes(profile, machine):
    assert seccomp.filter_path(profile, machine).read_bytes() == generate.generate(profile, machine)


@MACHINES
@pytest.mark.parametrize("profile", ["build", "run"])
def test_ordinary_calls_are_allowed(profile, machine):
    for name in ("read", "write", "mmap", "futex"):
        assert ask(profile, machine, name) == ALLOW, name
    assert ask(profile, machine, "clone", 0x3D0F00) == ALLOW, "a thread"
    assert ask(profile, machine, "execve") == ALLOW, "bubblewrap still has to start the launcher"
    assert ask(profile, machine, "socket", 1) == ALLOW
    assert ask(profile, machine, "ioctl", 0, 0x5401) == ALLOW


@MACHINES
@pytest.mark.parametrize("profile", ["build", "run"])
def test_what_reaches_other_processes_or_the_machine_is_refused(profile, machine):
    assert {name: ask(profile, machine, name) for name in DENIED} == dict.fromkeys(DENIED, EPERM)
    assert ask(profile, machine, "clone3") == ENOSYS
    assert ask(profile, machine, "ioctl", 0, 0x5412) == EPERM
    assert ask(profile, machine, "ioctl", 0, 0xFFFFFFFF00005412) == EPERM, "the kernel looks at the low half only"
    for family in (2, 10, 16, 17, 40):
        assert ask(profile, machine, "socket", family) == EPERM
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask(profile, machine, "clone", flag | 0x11) == EPERM


@MACHINES
def test_a_second_process_only_where_compilers_need_it(machine):
    assert ask("build", machine, "clone", 0x11) == ALLOW
    assert ask("run", machine, "clone", 0x11) == EPERM
    assert ask("run", machine, "clone", 0x4111) == EPERM, "vfork"
    if machine == "x86_64":
        assert ask("build", machine, "fork") == ALLOW
        assert ask("run", machine, "fork") == EPERM
        assert ask("run", machine, "vfork") == EPERM


@MACHINES
def test_nothing_can_wake_a_stopped_runner(machine):
    assert {name: ask("run", machine, name) for name in RUN_ONLY} == dict.fromkeys(RUN_ONLY, EPERM)
    assert {name: ask("build", machine, name) for name in RUN_ONLY} == dict.fromkeys(RUN_ONLY, ALLOW)
    assert ask("run", machine, "fcntl", 3, 10, 18) == EPERM
    assert ask("run", machine, "fcntl", 3, 3) == ALLOW
    for name, place in generate.CONTINUING:
        for signal, answer in ((generate.SIGCONT, EPERM), (6, ALLOW)):
            assert ask("run", machine, name, *[1] * place, signal) == answer, name
    assert ask("run", machine, "ioctl", 0, generate.TIOCSCTTY) == EPERM, "a controlling terminal's hang-up continues a stopped process"


@MACHINES
def test_the_seal_refuses_every_further_exec(machine):
    for name in ("execve", "execveat", "seccomp"):
        assert ask("seal", machine, name) == EPERM
    for option in (1, 4, 22, 35):
        assert ask("seal", machine, "prctl", option) == EPERM
    assert ask("seal", machine, "prctl", 15) == ALLOW
    assert ask("seal", machine, "read") == ALLOW


@pytest.mark.parametrize("profile", generate.PROFILES)
def test_other_architectures_are_killed_and_newer_calls_unknown(profile):
    x86 = seccomp.filter_path(profile, "x86_64").read_bytes()
    arm = seccomp.filter_path(profile, "aarch64").read_bytes()
    assert verdict(x86, 1, arch=I386) == KILL
    assert verdict(x86, 0x40000000 + 1) == KILL, "x32"
    assert verdict(arm, 64, arch=X86) == KILL
    assert verdict(x86, generate.NEWEST + 1) == ENOSYS
    assert verdict(arm, generate.NEWEST + 7, arch=ARM) == ENOSYS


def test_an_architecture_without_filters_is_an_environment_fault():
    with pytest.raises(EnvironmentFault, match="riscv64") as caught:
        seccomp.filter_path("run", "riscv64")
    assert caught.value.code == 3
    assert "x86_64" in caught.value.hint
