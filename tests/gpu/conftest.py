"""Tests here need a CUDA device and are skipped without one."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.gpu)
            if not Path("/dev/nvidiactl").exists():
                item.add_marker(skip)
