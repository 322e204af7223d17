"""Reading candidate files: what becomes the text, and its content address."""

from __future__ import annotations

import hashlib
from pathlib import Path

from console.candidates import read_candidate


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "candidate.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")
    found = read_candidate(path)
    assert found.text == "x = 1\n"
    assert found.sha256 == hashlib.sha256(b"x = 1\n").hexdigest()
