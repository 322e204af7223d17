"""Outputs that a runner has shown: what is charged, what is shown first, and where it ends. The trusted side is played."""

import os

import pytest

from evaluator.judge.outcome import Refusal
from evaluator.judge.reading import PLACES, ShownMemory, Unseen
from evaluator.judge.trusted import Followed
from evaluator.protocol.clock import Call
from evaluator.protocol.mailbox import Mailbox, OutputPlace
from evaluator.records import Status
from evaluator.runner import layout

CALL = Call(wall_us=100.0, event_us=90.0, code=layout.OK)


class Trusted:
    """Follows answers as it is told to; remembers what it was shown."""

    why = ""

    def __init__(self):
        self.answers, self.shown, self.watched, self.forgotten, self.verified = [], [], [], [], []

    def watch(self, runner, answer, calling_off, sizes):
        self.watched.append(runner)

    def follow(self, runner):
        self.following = runner

    def followed(self):
        return self.answers.pop(0)

    def show(self, runner, address, nbytes, pieces, descriptors):
        for descriptor in descriptors:
            os.fstat(descriptor)
        self.shown.append((runner, address, nbytes))
        return self.why

    def forget(self, runner):
        self.forgotten.append(runner)

    def verify(self, runner, slot, places, declared):
        self.verified.append((runner, slot, [p["address"] for p in places]))
        return True, 0.0, ""


class Runner:
    """Says that its output lies where it is told."""

    declared = None

    def __init__(self, name, *, reference=False):
        self.name, self.reference = name, reference
        self.mailbox = Mailbox()
        self.address = 4096

    def places(self):
        return [OutputPlace(self.address, 64, "float32", (16,), (1,))]

    def export(self, place):
        return [{"base": place.address, "size": 1 << 21}], [os.memfd_create("piece")]

    def wrong(self, detail):
        return Refusal(Status.INCORRECT, detail)

    def tampered(self, detail):
        return Refusal(Status.TAMPERED, detail)


@pytest.fixture
def bench():
    trusted = Trusted()
    reading = ShownMemory(trusted)
    yield trusted, reading
    reading.close()


def answer(bench, runner, times, *, copied=None):
    """One call of `runner`; `times` are when the copy had begun and was done, None where there was no place to copy from."""
    trusted, reading = bench
    trusted.answers.append(None if times is None else Followed(*times, ((copied or runner.address, 64),)))
    reading.prepare(runner)
    return reading.answered(runner, CALL)


def test_what_the_copy_took_beyond_the_references_is_charged(bench):
    _, reading = bench
    reference, candidate = Runner("reference", reference=True), Runner("candidate")
    assert answer(bench, candidate, (5.0, 900.0)) == CALL, "nothing to compare with yet"
    for took in (100.0, 101.0, 102.0, 103.0, 110.0):
        assert answer(bench, reference, (5.0, took)) == CALL
    assert answer(bench, candidate, (6.0, 104.0)).late_us == 0.0
    assert answer(bench, candidate, (6.0, 307.2)).late_us == pytest.approx(200.0)
    assert reading.reach_us == [5.0] * 6 + [6.0] * 2


def test_a_new_place_is_shown_and_the_call_made_again(bench):
    trusted, _ = bench
    candidate = Runner("candidate")
    before = len(os.listdir("/proc/self/fd"))
    for address in (4096, 8192):
        candidate.address = address
        with pytest.raises(Unseen):
            answer(bench, candidate, None)
    assert trusted.shown == [("candidate", 4096, 64), ("candidate", 8192, 64)]
    assert len(os.listdir("/proc/self/fd")) == before, "the descriptors were closed"
    with pytest.raises(Unseen):
        answer(bench, candidate, None)
    assert len(trusted.shown) == 2, "a place that was shown is not shown again"


def test_memory_that_cannot_be_shown_is_no_output(bench):
    trusted, _ = bench
    trusted.why = "cuMemImportFromShareableHandle: invalid argument (1)"
    with pytest.raises(Refusal, match=r"memory that cannot be read \(cuMemImport") as caught:
        answer(bench, Runner("candidate"), None)
    assert caught.value.status is Status.INCORRECT


def test_outputs_that_never_lie_still_are_refused(bench):
    candidate = Runner("candidate")
    for number in range(PLACES):
        candidate.address = 4096 * (number + 1)
        with pytest.raises(Unseen):
            answer(bench, candidate, None)
    candidate.address = 1
    with pytest.raises(Refusal, match=f"more than {PLACES} places") as caught:
        answer(bench, candidate, None)
    assert caught.value.status is Status.INCORRECT


def test_another_process_of_the_same_name_is_watched_anew_and_shows_anew(bench):
    trusted, reading = bench
    first, second = Runner("candidate"), Runner("candidate")
    with pytest.raises(Unseen):
        answer(bench, first, None)
    answer(bench, first, (5.0, 100.0))
    reading.forget(second)
    with pytest.raises(Unseen):
        answer(bench, second, None)
    assert trusted.watched == ["candidate", "candidate"]
    assert trusted.forgotten == ["candidate"]
    assert len(trusted.shown) == 2


def test_a_call_that_fails_is_called_off(bench):
    trusted, reading = bench
    trusted.answers.append(None)
    reading.prepare(Runner("candidate"))
    reading.call_off()
    assert trusted.answers == []


def test_the_copies_are_verified_as_the_runner_described_them_at_the_answer(bench):
    trusted, reading = bench
    candidate = Runner("candidate")
    answer(bench, candidate, (5.0, 100.0))
    candidate.address = 1 << 40
    assert reading.verify(candidate, 3) == (True, 0.0, "")
    assert trusted.verified == [("candidate", 3, [4096])]


def test_an_answer_page_that_changes_after_the_answer_is_tampered(bench):
    candidate = Runner("candidate")
    with pytest.raises(Refusal, match="changed after the answer") as caught:
        answer(bench, candidate, (5.0, 100.0), copied=8192)
    assert caught.value.status is Status.TAMPERED
