"""Writes the committed seccomp filters with libseccomp (development only).

    python -m evaluator.sandbox.filters.generate [DIRECTORY]

Invariant: the output depends on this file and on libseccomp's syscall tables only, never on the machine's kernel.
Not for: evaluation. At run time the committed bytes are used and libseccomp is not needed.

Each filter allows by default and refuses what is listed; a syscall of another architecture (i386, x32) kills the process
and a syscall number newer than `NEWEST` gets ENOSYS, so that what a future kernel adds is not allowed unseen.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PROFILES = ("build", "run", "seal")

NEWEST = 450
"""set_mempolicy_home_node: the newest number that libseccomp 2.5.4 knows; the same on both architectures."""

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000

DENIED = """
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp
    keyctl add_key request_key bpf perf_event_open userfaultfd
    mount umount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree mount_setattr
    unshare setns io_uring_setup io_uring_enter io_uring_register
    kexec_load kexec_file_load init_module finit_module delete_module create_module reboot swapon swapoff
    quotactl quotactl_fd acct personality ioperm iopl modify_ldt
    clock_settime clock_settime64 settimeofday stime adjtimex clock_adjtime clock_adjtime64
    sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set
    memfd_secret fanotify_init fanotify_mark name_to_handle_at open_by_handle_at vhangup syslog nfsservctl
    lookup_dcookie set_mempolicy set_mempolicy_home_node mbind move_pages migrate_pages uselib ustat sysfs _sysctl
"""
"""Refused with EPERM in every profile. Scheduling calls are here because the cpuset is part of the measurement."""

RUN_DENIED = """
    fork vfork timer_create timerfd_create mq_open mq_notify shmget shmat msgget semget io_setup io_submit memfd_create
"""
"""Refused in `run` as well: a second process; what could send SIGCONT to a stopped one (timers and queues choose their signal);
memory that no process's resident size shows; work that goes on in the kernel while the process is stopped, and timers that
interrupt whoever is then measured on its core."""

SEAL_DENIED = "execve execveat seccomp"
"""Installed by the launcher after the last exec and before candidate code."""

NAMESPACE_FLAGS = (0x00000080, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
CLONE_THREAD = 0x00010000
TIOCSTI, TIOCLINUX, TIOCSCTTY = 0x5412, 0x541C, 0x540E
SIGCONT = 18
CONTINUING = (("kill", 1), ("tkill", 1), ("tgkill", 2), ("rt_sigqueueinfo", 1), ("rt_tgsigqueueinfo", 2), ("pidfd_send_signal", 1))
"""Calls that could continue a stopped process, and which of their arguments is the signal. A terminal's hang-up does so as well, from a
kernel thread if need be: hence no controlling terminal (and no terminal at all in the sandbox's /dev)."""
F_SETSIG = 10
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_MM, PR_SET_PTRACER, PR_SCHED_CORE = 1, 4, 22, 35, 0x59616D61, 62
AF_UNIX = 1

NOT_EQUAL, EQUAL, MASKED_EQUAL = 1, 4, 7
LOW_32 = 0xFFFFFFFF
UNKNOWN = -1


class _Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


Rule = tuple[str, int, tuple[tuple[int, int, int, int], ...]]
"""Syscall name, errno, comparisons (argument index, operator, first and second operand)."""


def rules(profile: str) -> Iterator[Rule]:
    """Yield what `profile` refuses."""
    if profile == "seal":
        yield from ((name, errno.EPERM, ()) for name in SEAL_DENIED.split())
        for option in (PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_MM, PR_SET_PTRACER):
            yield "prctl", errno.EPERM, ((0, MASKED_EQUAL, LOW_32, option),)
        return
    yield from ((name, errno.EPERM, ()) for name in DENIED.split())
    yield "clone3", errno.ENOSYS, ()
    yield from (("clone", errno.EPERM, ((0, MASKED_EQUAL, flag, flag),)) for flag in NAMESPACE_FLAGS)
    yield from (("ioctl", errno.EPERM, ((1, MASKED_EQUAL, LOW_32, request),)) for request in (TIOCSTI, TIOCLINUX, TIOCSCTTY))
    yield "socket", errno.EPERM, ((0, NOT_EQUAL, AF_UNIX, 0),)
    yield "prctl", errno.EPERM, ((0, MASKED_EQUAL, LOW_32, PR_SCHED_CORE),)
    if profile == "run":
        yield from ((name, errno.EPERM, ()) for name in RUN_DENIED.split())
        yield "clone", errno.EPERM, ((0, MASKED_EQUAL, CLONE_THREAD, 0),)
        yield "fcntl", errno.EPERM, ((1, MASKED_EQUAL, LOW_32, F_SETSIG),)
        yield from ((name, errno.EPERM, ((place, MASKED_EQUAL, LOW_32, SIGCONT),)) for name, place in CONTINUING)


def generate(profile: str, architecture: str) -> bytes:
    """Return the classic BPF program of `profile` for `architecture`."""
    library = _library()
    context = library.seccomp_init(ALLOW)
    try:
        _check(library.seccomp_attr_set(context, 2, KILL_PROCESS), "bad architecture action")
        token = ARCHITECTURES[architecture]
        if library.seccomp_arch_native() != token:
            _check(library.seccomp_arch_add(context, token), "add architecture")
            _check(library.seccomp_arch_remove(context, library.seccomp_arch_native()), "remove architecture")
        for name, number, comparisons in rules(profile):
            _add(library, context, token, name, number, comparisons)
        return _newest_only() + _export(library, context)
    finally:
        library.seccomp_release(context)


def _newest_only() -> bytes:
    """Prologue: numbers between NEWEST and the x32 bit get ENOSYS; everything else falls through to the filter."""
    load, at_least, greater, answer = 0x20, 0x35, 0x25, 0x06
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 0),
            (at_least, 2, 0, 0x40000000),
            (greater, 0, 1, NEWEST),
            (answer, 0, 0, ERRNO | errno.ENOSYS),
        )
    )


def _add(
    library: ctypes.CDLL, context: int, token: int, name: str, number: int, comparisons: tuple[tuple[int, int, int, int], ...]
) -> None:
    syscall = library.seccomp_syscall_resolve_name(name.encode())  # rules are given in native numbers, libseccomp translates them
    if syscall == UNKNOWN:
        raise ValueError(f"libseccomp does not know {name}")
    if library.seccomp_syscall_resolve_name_arch(token, name.encode()) < 0:
        return  # this architecture never had it
    array = (_Compare * max(1, len(comparisons)))(*(_Compare(*c) for c in comparisons))
    _check(library.seccomp_rule_add_array(context, ERRNO | number, syscall, len(comparisons), array), name)


def _export(library: ctypes.CDLL, context: int) -> bytes:
    with tempfile.TemporaryFile() as file:
        _check(library.seccomp_export_bpf(context, file.fileno()), "export")
        file.seek(0, os.SEEK_SET)
        return file.read()


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_arch_native.restype = ctypes.c_uint32
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_arch_add.argtypes = library.seccomp_arch_remove.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.seccomp_syscall_resolve_name_arch.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library


def _check(code: int, what: str) -> None:
    if code:
        raise OSError(-code, f"libseccomp: {what}")


def main(directory: Path) -> None:
    """Write every filter into `directory`."""
    for architecture in ARCHITECTURES:
        for profile in PROFILES:
            (directory / f"{profile}-{architecture}.bpf").write_bytes(generate(profile, architecture))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
