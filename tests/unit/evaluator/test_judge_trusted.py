"""The trusted side on real tensors: slots, bytes from a snapshot, what a runner changed, and answers that must not pass."""

import math
import mmap
import os

import pytest
import torch

from evaluator.devices.cpu.inside.runner import Inside
from evaluator.devices.cpu.trusted import Memory
from evaluator.judge.trusted import _in_the_problem
from evaluator.trusted.examiner import Examiner, inputs_unchanged
from evaluator.trusted.pool import Pool, describe, layout_of
from problems.registry import load
from problems.workload import open_workload

SAMPLES = {
    "plain": torch.arange(12.0).reshape(3, 4),
    "transposed": torch.arange(12.0).reshape(3, 4).t(),
    "every other column": torch.arange(24.0).reshape(3, 8)[:, ::2],
    "expanded": torch.arange(4.0).expand(3, 4),
    "channels last": torch.arange(48.0).reshape(1, 3, 4, 4).to(memory_format=torch.channels_last),
    "a scalar": torch.tensor(2.5),
    "empty": torch.empty(0, 4),
    "bool": torch.tensor([[True, False], [False, True]]),
    "int64": torch.arange(6).reshape(2, 3),
    "uint8": torch.arange(5, dtype=torch.uint8),
    "bfloat16": torch.arange(6.0).to(torch.bfloat16),
    "float16 transposed": torch.arange(6.0).to(torch.float16).reshape(2, 3).t(),
    "float64": torch.arange(3, dtype=torch.float64),
    "complex64": torch.tensor([1 + 2j, 3 - 1j]),
    "nan and infinity": torch.tensor([math.nan, math.inf, -math.inf, -0.0]),
    "nan in a transposed one": torch.tensor([[math.nan, 1.0], [2.0, math.inf]]).t(),
    "a scalar nan": torch.tensor(math.nan),
}
BATCH = tuple(SAMPLES.values())


@pytest.fixture
def memory():
    return Memory((0,), (0,))


@pytest.fixture
def pool(memory):
    made = Pool("test", slots=2, sample=BATCH, memory=memory)
    made.fill(lambda seed: BATCH, 5)
    yield made
    made.close()


@pytest.fixture
def arena(pool):
    """What a runner maps of the pool."""
    return mapped(pool)


def mapped(pool):
    return Inside(1).slots(pool.block.descriptor, slots=2, slot_bytes=pool.slot_bytes, layout=pool.layout)


def same(one, other):
    return torch.equal(bits(one), bits(other))


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def snapshot(memory, tensors):
    """Share a page with the bytes that each tensor spans, one after another, as the judge copies them out of a runner."""
    descriptor = os.memfd_create("page")
    os.ftruncate(descriptor, 1 << 16)
    page, offsets = mmap.mmap(descriptor, 1 << 16), []
    place = 0
    for tensor in tensors:
        offsets.append(place)
        span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        raw = bytes(bits(tensor.as_strided((span,), (1,))).numpy().data)
        page[place : place + len(raw)] = raw
        place += -(-len(raw) // 64) * 64
    memory.share(descriptor, 1 << 16)
    os.close(descriptor)
    return offsets


@pytest.mark.parametrize("index", range(len(BATCH)), ids=list(SAMPLES))
def test_a_runner_sees_what_was_drawn_as_it_was_drawn(pool, arena, index):
    for slot in arena:
        seen = slot[index]
        assert same(seen, BATCH[index])
        assert (seen.dtype, seen.shape) == (BATCH[index].dtype, BATCH[index].shape)
        if seen.numel():
            assert seen.stride() == BATCH[index].stride()


def test_slots_do_not_overlap():
    layout, size = layout_of(BATCH)
    places = [(item["offset"], item["elements"] * BATCH[i].element_size()) for i, item in enumerate(layout)]
    ends = [offset + length for offset, length in places]
    assert all(offset % 256 == 0 for offset, _ in places)
    assert all(end <= following for end, (following, _) in zip(ends, places[1:], strict=False))
    assert max(ends) <= size


def test_plain_values_ride_along():
    layout, size = layout_of((3, "x", None, 2.5, torch.ones(2)))
    assert [item.get("value") for item in layout[:4]] == [3, "x", None, 2.5]
    assert (layout[4]["offset"], size) == (0, 256)
    assert describe(torch.ones(2, 3).t()) == {"dtype": "float32", "shape": [3, 2], "strides": [1, 3]}


def test_fresh_values_reach_a_runner_that_mapped_before(memory):
    made = Pool("test", slots=2, sample=(torch.zeros(3),), memory=memory)
    arena = mapped(made)
    made.fill(lambda seed: (torch.full((3,), float(seed)),), 7)
    assert [slot[0].tolist() for slot in arena] == [[7.0] * 3, [8.0] * 3]
    made.close()


def test_what_a_runner_writes_reaches_nobody(pool, arena):
    arena[0][0].fill_(99.0)
    other = mapped(pool)
    assert same(other[0][0], BATCH[0])
    assert same(pool.private[0][0], BATCH[0])


def tensors_with_bytes(slot):
    return [value for value in slot if value.numel()]


def changes(pool, slot, *, writable=frozenset()):
    memory = Memory((0,), (0,))
    offsets = snapshot(memory, tensors_with_bytes(slot))
    return inputs_unchanged(pool, 0, memory, offsets, writable=writable)


def test_untouched_inputs_are_unchanged_bit_by_bit(pool, arena):
    """NaN included, whatever the strides: a NaN is the same NaN."""
    assert changes(pool, arena[0]) == ""


@pytest.mark.parametrize("index", [i for i, value in enumerate(BATCH) if value.numel()], ids=[k for k, v in SAMPLES.items() if v.numel()])
def test_one_changed_element_is_found(pool, arena, index):
    target = arena[0][index]
    last = (-1,) * target.dim()
    target[last] = not bool(target[last]) if target.dtype is torch.bool else 77
    assert changes(pool, arena[0]) == f"input {index} was changed"
    assert changes(pool, arena[0], writable=frozenset({index})) == ""


def test_a_sign_of_zero_is_a_change(pool, arena):
    index = list(SAMPLES).index("nan and infinity")
    arena[0][index][3] = 0.0
    assert changes(pool, arena[0]) == f"input {index} was changed"


@pytest.mark.parametrize("name", [k for k, v in SAMPLES.items() if v.numel()])
def test_an_output_comes_out_of_a_snapshot_with_its_strides(memory, name):
    tensor = SAMPLES[name]
    offsets = snapshot(memory, [tensor])
    (seen,) = memory.outputs([{**describe(tensor), "offset": offsets[0]}])
    assert same(seen, tensor)
    assert seen.stride() == tensor.stride()


def test_an_empty_output_needs_no_bytes(memory):
    snapshot(memory, [])
    (seen,) = memory.outputs([{"offset": 0, "dtype": "int64", "shape": [0, 3], "strides": [3, 1]}])
    assert (seen.dtype, tuple(seen.shape)) == (torch.int64, (0, 3))


MODULE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def examiner(folder, expression, *, inputs="torch.randn(4, 6)", sizes=None):
    path = folder / "problem.py"
    path.write_text(MODULE.format(expression=expression, inputs=inputs), encoding="utf-8")
    if sizes is not None:
        path.with_suffix(".yml").write_text(sizes, encoding="utf-8")
    problem = load(str(path))
    made = Examiner(open_workload(problem, "cpu"), problem.cases("cpu")[0])
    made.build_reference(3)
    return made


@pytest.mark.parametrize(
    ("expression", "inputs", "passing"),
    [
        ("torch.tanh(x) * 3", "torch.randn(4, 6)", []),
        ("x * 1e-9", "torch.randn(4, 6)", ["zeros", "the output's mean"]),
        ("x + 1e-6", "torch.randn(4, 6)", ["a copy of input 0"]),
        ("x.mean(dim=1) * 0 + 3", "torch.randn(4, 6)", ["the output's mean"]),
        ("(x.sum(dim=1), x.mean(dim=1) + 2)", "torch.randn(4, 6)", []),
        ("(x * 0, x.sum() * 0)", "torch.randn(4, 6)", ["zeros", "the output's mean"]),
        ("x.argmax(dim=1)", "torch.randn(40, 6)", []),
        ("x > 0", "torch.randn(40, 6)", []),
        ("x.argmax(dim=1) * 0", "torch.randn(4, 6)", ["zeros", "the output's mean"]),
    ],
)
def test_trivial_answers_that_would_pass_are_named(tmp_path, expression, inputs, passing):
    made = examiner(tmp_path, expression, inputs=inputs)
    assert made.trivial_answers_that_pass(made.draw(11)) == passing


def test_a_reference_is_held_against_float64(tmp_path):
    made = examiner(tmp_path, "torch.tanh(x)")
    assert made.reference_error(made.draw(1)) == (True, "")
    unstable = examiner(tmp_path, "(x * 1e8 + 1) - x * 1e8", inputs="torch.randn(64, 64)")
    ok, words = unstable.reference_error(unstable.draw(1))
    assert not ok
    assert words


def test_the_reference_keeps_its_kind_after_the_oracle(tmp_path):
    made = examiner(tmp_path, "torch.tanh(x)")
    before = made.expected(made.draw(2))
    made.reference_error(made.draw(1))
    after = made.expected(made.draw(2))
    assert after.dtype is torch.float32
    assert same(before, after)


def test_a_reference_that_writes_into_its_inputs_leaves_the_private_copy_alone(tmp_path):
    made = examiner(tmp_path, "x.mul_(2)")
    inputs = made.draw(4)
    kept = inputs[0].clone()
    assert same(made.expected(inputs), kept * 2)
    assert same(inputs[0], kept)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (lambda want: want + 1, ""),
        (lambda want: want.double(), "dtype"),
        (lambda want: want[:-1], "shape"),
        (lambda want: want * math.nan, "nan"),
        (lambda want: torch.where(want == want.max(), math.inf, want), ""),
        (lambda want: want.new_empty(0), "shape"),
    ],
)
def test_wrong_outputs_fail(tmp_path, output, words):
    made = examiner(tmp_path, "torch.tanh(x) * 3")
    inputs = made.draw(6)
    expected = made.expected(inputs)
    ok, _, found = made.compare(inputs, output(expected), expected)
    assert not ok
    assert words in found.lower()
    assert made.compare(inputs, expected.clone(), expected)[0]


def test_the_same_seed_gives_the_same_values_and_another_does_not(tmp_path):
    made = examiner(tmp_path, "torch.tanh(x)")
    assert same(made.draw(9)[0], made.draw(9)[0])
    assert not same(made.draw(9)[0], made.draw(10)[0])


def test_a_pools_descriptor_is_closed_with_it(memory):
    made = Pool("test", slots=1, sample=(torch.ones(2),), memory=memory)
    descriptor = made.block.descriptor
    made.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        (
            'Traceback (most recent call last):\n  File "/x/evaluator/trusted/__main__.py", line 9, in case\n'
            '  File "<mine.py reference.py _problem0>", line 4, in forward\n  File "/y/torch/__init__.py", line 7\nNameError: no x',
            "mine.py, line 4: NameError: no x",
        ),
        ('Traceback (most recent call last):\n  File "/x/evaluator/trusted/__main__.py", line 9, in case\nKeyError: 1', ""),
        ('  File "<frozen importlib._bootstrap>", line 1, in _call\nImportError: x', ""),
    ],
)
def test_only_what_was_raised_in_a_problems_own_code_is_its_fault(text, blamed):
    assert _in_the_problem(text) == blamed
