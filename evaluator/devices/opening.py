"""From a device's name to the device.

Not for: holding it (`evaluator.devices.lease`).
"""

from __future__ import annotations

import re

from evaluator.devices.cpu.device import open_cpu
from evaluator.devices.cuda.device import open_cuda
from evaluator.devices.device import Device
from evaluator.errors import UsageError

_CUDA = re.compile(r"cuda(?::(\d+))?")


def open_device(name: str) -> Device:
    """The device called `name`; EnvironmentFault for one that cannot be measured on, UsageError for a name of none."""
    if name == "cpu":
        return open_cpu()
    if (found := _CUDA.fullmatch(name)) is not None:
        return open_cuda(int(found[1] or 0))
    raise UsageError(f"no device {name[:60]!r}", "devices: cpu, cuda, cuda:0, ...")
