"""From a device's name to the device.

Not for: holding it (`evaluator.devices.lease`).
"""

from __future__ import annotations

import re

from evaluator.devices.cpu import CpuDevice, open_cpu
from evaluator.errors import EnvironmentFault, UsageError

_CUDA = re.compile(r"cuda(:\d+)?")


def open_device(name: str) -> CpuDevice:
    """The device called `cpu`; EnvironmentFault for one that cannot be measured on, UsageError for a name of none."""
    if name == "cpu":
        return open_cpu()
    if _CUDA.fullmatch(name):
        raise EnvironmentFault(f"this version measures on `cpu` only, not on `{name}`", "use --device cpu")
    raise UsageError(f"no device {name[:60]!r}", "devices: cpu, cuda, cuda:0, ...")
