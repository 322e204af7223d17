"""What a list of mappings says of outputs and inputs; and that of this very process."""

import mmap
import os

import pytest

from evaluator.protocol.mappings import file_id, is_mapped_once, is_own_memory, parse_mappings, read_mappings

TEXT = """\
1000-3000 rw-p 00000000 00:00 0                          [heap]
3000-4000 r--p 00000000 00:00 0
5000-6000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
7000-9000 rw-p 00000000 00:01 42                         /memfd:inputs (deleted)
9000-a000 r--p 00002000 00:01 42                         /memfd:inputs (deleted)
b000-c000 rw-p 00000000 08:01 9                          /a file with spaces
"""
MAPPINGS = parse_mappings(TEXT)
SLOTS = (os.makedev(0, 1), 42)


@pytest.mark.parametrize(
    ("address", "nbytes", "own"),
    [
        (0x1000, 0x2000, True),
        (0x2FFF, 0x1001, True),
        (0x2FFF, 0x1002, False),
        (0x0FFF, 2, False),
        (0x5000, 1, False),
        (0x7000, 64, False),
        (0xB000, 64, False),
        (0x4000, 1, False),
        (0xFFFF, 1, False),
        (0x7000, 0, True),
        (0, 8, False),
    ],
)
def test_own_memory_is_private_and_has_nothing_behind_it(address, nbytes, own):
    assert is_own_memory(MAPPINGS, address, nbytes) is own


@pytest.mark.parametrize(
    ("address", "nbytes", "once"),
    [(0x7000, 0x3000, True), (0x7000, 0x2F00, True), (0x7000, 0x3001, False), (0x7040, 0x2000, False), (0x1000, 0x1000, False)],
)
def test_inputs_are_mapped_once_where_they_are_said_to_be(address, nbytes, once):
    assert is_mapped_once(MAPPINGS, SLOTS, address, nbytes) is once


@pytest.mark.parametrize(
    "line",
    [
        "d000-10000 rw-p 00000000 00:01 42 /memfd:inputs (deleted)",
        "d000-e000 r--p 00001000 00:01 42 /memfd:inputs (deleted)",
    ],
    ids=["a second one", "a part of it again"],
)
def test_a_second_mapping_is_one_too_many(line):
    assert not is_mapped_once(parse_mappings(f"{TEXT}{line}\n"), SLOTS, 0x7000, 0x3000)


def test_a_shared_mapping_or_one_that_skips_a_part_is_not_the_callers():
    shared = parse_mappings("7000-a000 rw-s 00000000 00:01 42 /memfd:inputs (deleted)\n")
    skipping = parse_mappings("7000-8000 rw-p 00000000 00:01 42 x\n8000-9000 rw-p 00002000 00:01 42 x\n")
    assert not is_mapped_once(shared, SLOTS, 0x7000, 0x3000)
    assert not is_mapped_once(skipping, SLOTS, 0x7000, 0x2000)


def test_this_process_is_read_as_it_is():
    descriptor = os.memfd_create("mappings")
    os.ftruncate(descriptor, 8192)
    with mmap.mmap(descriptor, 8192, access=mmap.ACCESS_COPY) as first:
        (mine,) = [m for m in read_mappings(os.getpid()) if m.file == file_id(descriptor)]
        assert (mine.end - mine.start, mine.private, mine.offset) == (8192, True, 0)
        first[0] = 1  # copied on write: it stays the same mapping
        assert is_mapped_once(read_mappings(os.getpid()), file_id(descriptor), mine.start, 8192)
        assert not is_own_memory(read_mappings(os.getpid()), mine.start, 1)
        with mmap.mmap(descriptor, 4096, access=mmap.ACCESS_COPY):
            assert not is_mapped_once(read_mappings(os.getpid()), file_id(descriptor), mine.start, 8192)
    os.close(descriptor)


def test_a_process_that_is_gone_has_none():
    assert read_mappings(2**22 + 1) == []
