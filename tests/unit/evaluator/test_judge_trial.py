"""What a runner is asked between the writing of its inputs and its answer. Runner and trusted side are played."""

from evaluator.judge.trial import Bench
from evaluator.protocol.clock import Call
from evaluator.runner import layout


class Runner:
    closed = False

    def __init__(self, name, asked, *, touch_us=50.0):
        self.name, self.reference, self.asked, self.touch_us = name, name == "reference", asked, touch_us

    def call(self, operation=layout.CALL, *, slot=0, timeout_s=None):
        self.asked.append((self.name, operation))
        return Call(wall_us=100.0, event_us=90.0, code=layout.OK)

    def touch(self):
        self.asked.append((self.name, layout.TOUCH))
        return self.touch_us

    def rest(self):
        self.asked.append((self.name, "rest"))

    def output_address(self):
        return 0


class Trusted:
    def __init__(self, asked):
        self.asked = asked

    def fill(self, runner, seed, *, flush):
        self.asked.append((runner, "fill"))

    def input_change(self, runner, slot, offsets):
        return ""


class Reading:
    def prepare(self, runner):
        pass

    def answered(self, runner, call):
        return call

    def verify(self, runner, slot):
        return True, 0.0, ""

    def input_change(self, runner, slot):
        return ""


def bench(*, spins):
    asked = []
    return Bench(Trusted(asked), Reading(), slots=2, spins=spins), asked


def test_a_runner_that_stands_still_is_not_woken_between_its_inputs_and_its_clock():
    """Woken untimed it could read the fresh inputs and start."""
    measuring, asked = bench(spins=False)
    candidate, reference = Runner("candidate", asked), Runner("reference", asked)
    measuring.begin_turn(candidate)
    measuring.trial(candidate)
    measuring.empty(reference)
    assert [entry for entry in asked if entry[1] != "rest"] == [
        ("candidate", "fill"),
        ("candidate", layout.CALL),
        ("reference", "fill"),
        ("reference", layout.EMPTY),
    ]


def test_a_touch_of_a_spinning_runner_costs_what_it_takes_beyond_the_references():
    measuring, asked = bench(spins=True)
    reference = Runner("reference", asked)
    for _ in range(5):
        assert measuring.trial(reference).late_us == 0.0
    assert measuring.trial(Runner("candidate", asked, touch_us=50.0)).late_us == 0.0
    assert measuring.trial(Runner("candidate", asked, touch_us=2050.0)).late_us == 2000.0
