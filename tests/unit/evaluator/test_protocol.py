"""Each piece of the clock protocol, alone, against real memory and real processes."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from evaluator.protocol import blocks
from evaluator.protocol.channel import Channel, Gone, Raised, Silent, Unasked
from evaluator.protocol.clock import CallDied, CallTimeout, Spinning, Stopped
from evaluator.protocol.freeze import Freezer, NotStopping, Stirred
from evaluator.protocol.mailbox import BadAnswer, EarlyEcho, Mailbox
from evaluator.protocol.memory import Snapshot, Unreadable, open_memory
from evaluator.protocol.overhead import Overhead
from evaluator.protocol.quiet import Quiet, Unquiet, UnquietByCandidate
from evaluator.protocol.sealing import sealed_memory
from evaluator.runner import layout
from evaluator.runner.control import Control


def test_sealed_memory_can_be_read_and_copied_but_never_written_or_resized() -> None:
    descriptor, mapping = sealed_memory("test", 4096, read_only=True)
    mapping[0] = 7
    assert mmap.mmap(descriptor, 4096, prot=mmap.PROT_READ)[0] == 7
    private = mmap.mmap(descriptor, 4096, access=mmap.ACCESS_COPY)
    private[0] = 9
    assert mapping[0] == 7
    with pytest.raises(PermissionError):
        mmap.mmap(descriptor, 4096)
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"x", 0)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    reopened = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(reopened, 4096)


def test_a_private_mapping_sees_what_the_writer_writes_later() -> None:
    descriptor, mapping = sealed_memory("test", 4096, read_only=True)
    private = mmap.mmap(descriptor, 4096, access=mmap.ACCESS_COPY)
    assert private[5] == 0
    mapping[5] = 3
    assert private[5] == 3


def test_request_page_is_read_only_for_a_runner_and_answer_page_cannot_be_resized() -> None:
    box = Mailbox()
    with pytest.raises(PermissionError):
        mmap.mmap(box.request_fd, layout.REQUEST_BYTES)
    with pytest.raises(PermissionError):
        os.ftruncate(box.answer_fd, 0)
    assert mmap.mmap(box.answer_fd, layout.ANSWER_BYTES)[0] == 0
    box.close()


def test_an_echo_without_a_post_is_early() -> None:
    box = Mailbox()
    page = memoryview(mmap.mmap(box.answer_fd, layout.ANSWER_BYTES)).cast("Q")
    nonce = box.post(layout.CALL, 1)
    page[layout.ECHO] = nonce
    second = box.post(layout.CALL, 0)
    assert second != nonce
    page[layout.ECHO] = 12345
    with pytest.raises(EarlyEcho):
        box.post(layout.CALL, 0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([0], "0 outputs"),
        ([layout.MAX_OUTPUTS + 1], "outputs"),
        ([1, 4096, 16, 99, 1, 4], "impossible"),
        ([1, 4096, 16, 0, layout.MAX_DIMS + 1, 4], "impossible"),
        ([1, 4096, 1 << 60, 0, 1, 4], "impossible"),
        ([1, 4096, 16, 0, 1, 5], "span"),
        ([1, 4096, 0, 0, 2, 0, 1 << 63], "impossible"),
        ([1, 4096, 4, 0, 2, 1 << 20, 1 << 20, 0, 0, 0, 0, 0, 0, 0, 0], "impossible"),
    ],
)
def test_an_impossible_answer_is_named(words: list[int], why: str) -> None:
    box = Mailbox()
    page = memoryview(mmap.mmap(box.answer_fd, layout.ANSWER_BYTES)).cast("Q")
    page[layout.OUTPUTS] = words[0]
    page[layout.FIRST_OUTPUT + 4 + layout.MAX_DIMS] = 1
    for index, word in enumerate(words[1:]):
        page[layout.FIRST_OUTPUT + index] = word
    with pytest.raises(BadAnswer, match=why):
        box.outputs()


def test_a_good_answer_is_read_back() -> None:
    box = Mailbox()
    page = memoryview(mmap.mmap(box.answer_fd, layout.ANSWER_BYTES)).cast("Q")
    page[layout.OUTPUTS] = 1
    base = layout.FIRST_OUTPUT
    for offset, word in {0: 4096, 1: 24, 2: 0, 3: 2, 4: 2, 5: 3, 4 + layout.MAX_DIMS: 3, 5 + layout.MAX_DIMS: 1}.items():
        page[base + offset] = word
    (place,) = box.outputs()
    assert (place.address, place.nbytes, place.dtype, place.shape, place.strides) == (4096, 24, "float32", (2, 3), (3, 1))


def _child(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_a_stopped_process_makes_no_progress_in_any_thread() -> None:
    child = _child(
        "import threading,mmap,sys,time\n"
        "def spin():\n  while True: counts[0]+=1\n"
        "counts=[0]\n"
        "threading.Thread(target=spin,daemon=True).start()\n"
        "print('up',flush=True)\n"
        "while True: time.sleep(.001)\n"
    )
    assert child.stdout is not None
    child.stdout.readline()
    freezer = Freezer(child.pid)
    freezer.stop()
    freezer.confirm()
    before = _cpu_ns(child.pid)
    time.sleep(0.05)
    assert _cpu_ns(child.pid) == before
    freezer.resume()
    time.sleep(0.05)
    assert _cpu_ns(child.pid) > before
    _end(child)
    with pytest.raises(NotStopping):
        freezer.resume()
    freezer.close()


LEAVING = f"""
import ctypes,threading,time
libc=ctypes.CDLL(None)
threading.Thread(target=lambda:[print('up',flush=True)]+[time.sleep(.001) for _ in iter(int,1)]).start()
libc.syscall({93 if os.uname().machine == "aarch64" else 60},0)
"""


def test_a_process_whose_main_thread_left_is_not_taken_for_stopped() -> None:
    child = _child(LEAVING)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.05)
    freezer = Freezer(child.pid)
    with pytest.raises(NotStopping, match="main thread"):
        freezer.stop()
    _end(child)
    freezer.close()


def test_a_process_that_ran_while_it_was_to_be_stopped_is_found_out() -> None:
    child = _child("print('up',flush=True)\nwhile True: sum(range(1000))")
    assert child.stdout is not None
    child.stdout.readline()
    freezer = Freezer(child.pid)
    freezer.stop()
    freezer.confirm()
    os.kill(child.pid, signal.SIGCONT)
    time.sleep(0.05)
    os.kill(child.pid, signal.SIGSTOP)
    time.sleep(0.05)
    with pytest.raises(Stirred):
        freezer.resume()
    _end(child)
    freezer.close()


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def _cpu_ns(pid: int) -> int:
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


def test_a_snapshot_copies_ranges_and_names_what_is_not_there() -> None:
    child = _child(
        "import ctypes,time\nb=ctypes.create_string_buffer(b'ratchet',64)\nprint(ctypes.addressof(b),flush=True)\ntime.sleep(60)"
    )
    assert child.stdout is not None
    address = int(child.stdout.readline())
    memory = open_memory(child.pid)
    snapshot = Snapshot(4096)
    offsets = snapshot.take(memory, [(address, 7), (address + 1, 3)])
    view = mmap.mmap(snapshot.descriptor, 4096, prot=mmap.PROT_READ)
    assert offsets == [0, 64]
    assert view[0:7] == b"ratchet"
    assert view[64:67] == b"atc"
    for bad in (0, 16, 1 << 63, (1 << 64) - 1, (1 << 64) + 5, -1):
        with pytest.raises(Unreadable):
            snapshot.take(memory, [(bad, 8)])
    with pytest.raises(Unreadable, match="span more"):
        snapshot.take(memory, [(address, 8192)])
    _end(child)


RUNNER = """
import mmap,sys
from evaluator.runner import layout
request=memoryview(mmap.mmap(int(sys.argv[1]),layout.REQUEST_BYTES,prot=mmap.PROT_READ)).cast('Q')
answer=memoryview(mmap.mmap(int(sys.argv[2]),layout.ANSWER_BYTES)).cast('Q')
last=0
print('up',flush=True)
while True:
    while request[layout.NONCE]==last: pass
    last=request[layout.NONCE]
    if request[layout.SLOT]==1: sys.exit(0)
    if request[layout.SLOT]==2: continue
    answer[layout.EVENT_NS]=5000
    answer[layout.CODE]=layout.OK
    answer[layout.ECHO]=last
"""


def _runner(box: Mailbox) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(box.request_fd), str(box.answer_fd)],
        pass_fds=(box.request_fd, box.answer_fd),
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_a_timed_call_measures_only_while_the_runner_runs() -> None:
    box = Mailbox()
    child = _runner(box)
    freezer = Freezer(child.pid)
    freezer.stop()

    def alive() -> bool:
        return child.poll() is None

    for _ in range(3):
        call = Stopped(box, freezer).call(layout.CALL, slot=0, timeout_s=5, alive=alive)
        assert (call.event_us, call.code) == (5.0, layout.OK)
        assert call.wall_us > 0
        before = _cpu_ns(child.pid)
        time.sleep(0.02)
        assert _cpu_ns(child.pid) == before
    with pytest.raises(CallTimeout):
        Stopped(box, freezer).call(layout.CALL, slot=2, timeout_s=0.3, alive=alive)
    _end(child)
    box.close()


def test_a_spinning_runner_answers_without_being_woken_and_rests_when_its_turn_is_over() -> None:
    box = Mailbox()
    child = _runner(box)
    freezer = Freezer(child.pid)
    clock = Spinning(box, freezer)
    clock.rest()
    assert freezer.stopped
    for _ in range(3):
        call = clock.call(layout.CALL, slot=0, timeout_s=5, alive=lambda: child.poll() is None)
        assert (call.event_us, call.code) == (5.0, layout.OK)
        assert not freezer.stopped
    before = _cpu_ns(child.pid)
    time.sleep(0.02)
    assert _cpu_ns(child.pid) > before, "it spins"
    clock.rest()
    clock.rest()
    before = _cpu_ns(child.pid)
    time.sleep(0.02)
    assert _cpu_ns(child.pid) == before
    with pytest.raises(CallTimeout):
        clock.call(layout.CALL, slot=2, timeout_s=0.3, alive=lambda: child.poll() is None)
    _end(child)
    box.close()


def test_a_runner_that_exits_during_a_call_died() -> None:
    box = Mailbox()
    child = _runner(box)
    freezer = Freezer(child.pid)
    freezer.stop()
    with pytest.raises(CallDied):
        Stopped(box, freezer).call(layout.CALL, slot=1, timeout_s=5, alive=lambda: child.poll() is None)
    _end(child)
    box.close()


def test_overhead_is_the_smaller_figure_and_slack_what_a_bare_cycle_leaves() -> None:
    overhead = Overhead(before=[10.0] * 10, interleaved=[30.0] * 10, bare=[4.0] * 10)
    assert overhead.overhead_us() == pytest.approx(10.0)
    assert overhead.slack_us() == pytest.approx(6.0)
    slowed = Overhead(before=[10.0] * 10, interleaved=[500.0] * 10, bare=[4.0] * 10)
    assert slowed.overhead_us() == pytest.approx(10.0)
    faster_later = Overhead(before=[10.0] * 10, interleaved=[8.0] * 10, bare=[9.0] * 10)
    assert faster_later.overhead_us() == pytest.approx(8.0)
    assert faster_later.slack_us() == 0.0


def test_a_plan_has_enough_calls_and_both_orders() -> None:
    plans = [blocks.plan(100) for _ in range(20)]
    for plan in plans:
        assert sum(p.reference for p in plan) >= 100
        assert sum(p.candidate for p in plan) >= 100
        assert all(3 <= p.reference <= 7 and 3 <= p.candidate <= 7 for p in plan)
    assert {p.candidate_first for plan in plans for p in plan} == {True, False}
    assert len({tuple(p.candidate for p in plan) for plan in plans}) > 1


def test_counterbalanced_orders_are_balanced_and_shuffled() -> None:
    orders = [tuple(blocks.counterbalanced(20)) for _ in range(5)]
    assert all(sum(order) == 20 and len(order) == 40 for order in orders)
    assert len(set(orders)) > 1


def test_the_last_call_of_a_block_is_always_verified() -> None:
    assert all(blocks.verify_now(last=True) for _ in range(100))
    drawn = sum(blocks.verify_now(last=False) for _ in range(2000))
    assert 850 < drawn < 1150


def test_quiet_voids_a_pair_and_names_who_makes_it_unquiet() -> None:
    quiet = Quiet(calibration=[100.0] * 9)
    assert quiet.is_quiet(150.0)
    assert not quiet.is_quiet(200.0)
    assert quiet.count(first=True, between=True, last=True, candidate_first=True)
    for _ in range(6):
        assert not quiet.count(first=True, between=False, last=True, candidate_first=True)
    with pytest.raises(UnquietByCandidate):
        quiet.judge()


def test_an_unquiet_machine_is_nobodys_fault() -> None:
    quiet = Quiet(calibration=[100.0] * 9)
    for index in range(15):
        quiet.count(first=True, between=index % 2 == 0, last=index % 2 == 1, candidate_first=True)
    with pytest.raises(Unquiet):
        quiet.judge()


def _pair(*, takes_descriptors: bool = False) -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours, takes_descriptors=takes_descriptors), theirs


def test_channel_answers_raises_and_ends() -> None:
    channel, theirs = _pair(takes_descriptors=True)

    def operations(name: str):
        return {"add": lambda m, d: {"sum": m["a"] + m["b"]}, "fail": _fail, "leave": _leave, "open": _open}[name]

    server = threading.Thread(target=lambda: Control(theirs.detach()).serve(operations))
    server.start()
    assert channel.answer("start", timeout_s=5)["ready"] == os.getpid()
    assert channel.ask("add", timeout_s=5, a=2, b=3)["sum"] == 5
    with pytest.raises(Raised) as caught:
        channel.ask("fail", timeout_s=5)
    assert caught.value.error == "ValueError"
    with pytest.raises(Raised) as caught:
        channel.ask("leave", timeout_s=5)
    assert caught.value.error == "SystemExit"
    channel.ask("open", timeout_s=5)
    with os.fdopen(channel.take_descriptor(), "rb") as file:
        assert file.read() == b"hello"
    channel.close()
    server.join(5)
    assert not server.is_alive()


def _fail(message, descriptors):
    raise ValueError("no")


def _leave(message, descriptors):
    raise SystemExit(0)


def _open(message, descriptors):
    descriptor = os.memfd_create("x")
    os.pwrite(descriptor, b"hello", 0)
    return {}, [descriptor]


def test_channel_names_silence_an_end_and_garbage() -> None:
    channel, theirs = _pair()
    with pytest.raises(Silent):
        channel.ask("wait", timeout_s=0.05)
    theirs.sendall(b"not json\n")
    with pytest.raises(Gone, match="not JSON"):
        channel.answer("wait", timeout_s=1)
    flood = threading.Thread(target=lambda: theirs.sendall(b"x" * ((1 << 20) + 2)))
    flood.start()
    with pytest.raises(Gone):
        channel.answer("wait", timeout_s=5)
    flood.join(5)
    theirs.close()
    with pytest.raises(Gone):
        channel.ask("wait", timeout_s=1)
    channel.close()


def test_what_is_said_unasked_is_no_answer() -> None:
    channel, theirs = _pair()
    theirs.sendall(b'{"ok":true,"differing":[]}\n')
    with pytest.raises(Unasked):
        channel.ask("construct", timeout_s=1)
    channel.close()
    theirs.close()


def test_descriptors_that_nobody_wants_are_dropped() -> None:
    channel, theirs = _pair()
    open_before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(theirs, [b'{"ok":true}\n'], [0] * 8)
    assert channel.answer("construct", timeout_s=1) == {"ok": True}
    assert channel.descriptors == []
    assert len(os.listdir("/proc/self/fd")) == open_before
    channel.close()
    theirs.close()


def test_an_answer_too_deep_to_parse_is_no_answer() -> None:
    channel, theirs = _pair()
    theirs.sendall(b'{"ok":' + b"[" * 100_000 + b"\n")
    with pytest.raises(Gone, match="not JSON"):
        channel.answer("construct", timeout_s=1)
    channel.close()
    theirs.close()
