"""The driver's management library (NVML): which devices there are and what state they are in.

Reads only. Not for: memory or kernels (`inside.driver`).
Source: NVML API reference.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from evaluator.errors import EnvironmentFault

GRAPHICS_CLOCK, MEMORY_CLOCK, DIE = 0, 2, 0
COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
THROTTLES = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}
BRAKING = ("power cap", "hardware slowdown", "software thermal", "hardware thermal", "power brake")
"""Reasons that make a measurement slower than the device is."""
MOST_PROCESSES = 64


class ManagementError(RuntimeError):
    """A call of the library failed."""


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device of the management library."""

    index: int
    handle: int

    @property
    def name(self) -> str:
        """As the vendor calls it."""
        return self._text("nvmlDeviceGetName")

    @property
    def uuid(self) -> str:
        """Its own name, the same in every process and container."""
        return self._text("nvmlDeviceGetUUID")

    @property
    def minor(self) -> int:
        """Number of its device file."""
        return self._number("nvmlDeviceGetMinorNumber")

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        _call("nvmlDeviceGetCudaComputeCapability", self._own, ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    @property
    def compute_mode(self) -> str:
        """Who may compute on it."""
        return COMPUTE_MODES[self._number("nvmlDeviceGetComputeMode")]

    @property
    def memory_bytes(self) -> int:
        """All of its memory."""
        memory = _Memory()
        _call("nvmlDeviceGetMemoryInfo", self._own, ctypes.byref(memory))
        return int(memory.total)

    def computing(self) -> list[int]:
        """Host pids of processes that hold a compute context on it, as far as the driver tells."""
        count, found = ctypes.c_uint(MOST_PROCESSES), (_Process * MOST_PROCESSES)()
        _call("nvmlDeviceGetComputeRunningProcesses_v3", self._own, ctypes.byref(count), found)
        return [found[index].pid for index in range(count.value)]

    def state(self) -> dict[str, Any]:
        """Clocks (MHz), temperature (degrees Celsius), power (W) and what holds them down."""
        return {
            "sm_mhz": self._optional("nvmlDeviceGetClockInfo", GRAPHICS_CLOCK),
            "memory_mhz": self._optional("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
            "celsius": self._optional("nvmlDeviceGetTemperature", DIE),
            "watts": (self._optional("nvmlDeviceGetPowerUsage") or 0) / 1e3,
            "throttled": self.throttles(),
        }

    def throttles(self) -> list[str]:
        """Why its clocks are lower than they could be."""
        reasons = ctypes.c_ulonglong()
        try:
            _call("nvmlDeviceGetCurrentClocksThrottleReasons", self._own, ctypes.byref(reasons))
        except ManagementError:
            return []
        return [word for bit, word in THROTTLES.items() if reasons.value & bit]

    @property
    def _own(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.handle)

    def _text(self, function: str) -> str:
        text = ctypes.create_string_buffer(96)
        _call(function, self._own, text, ctypes.c_uint(len(text)))
        return text.value.decode("utf-8", "replace")

    def _number(self, function: str, *arguments: int) -> int:
        value = ctypes.c_uint()
        _call(function, self._own, *(ctypes.c_int(a) for a in arguments), ctypes.byref(value))
        return value.value

    def _optional(self, function: str, *arguments: int) -> int | None:
        try:
            return self._number(function, *arguments)
        except ManagementError:
            return None


def gpus() -> list[Gpu]:
    """Every device that this process may see; an EnvironmentFault where there is no driver."""
    count = ctypes.c_uint()
    _library()
    _call("nvmlDeviceGetCount_v2", ctypes.byref(count))
    return [_gpu(index) for index in range(count.value)]


def driver_version() -> str:
    """As the vendor numbers it."""
    text = ctypes.create_string_buffer(96)
    _call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
    return text.value.decode("utf-8", "replace")


def cuda_version() -> tuple[int, int]:
    """The newest CUDA that the driver runs."""
    value = ctypes.c_int()
    _call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(value))
    return value.value // 1000, value.value % 1000 // 10


def _gpu(index: int) -> Gpu:
    handle = ctypes.c_void_p()
    _call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
    return Gpu(index, handle.value or 0)


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        raise EnvironmentFault("there is no CUDA device here: the NVIDIA driver is not installed", "use --device cpu") from error
    if code := library.nvmlInit_v2():
        raise EnvironmentFault(f"there is no CUDA device here: the NVIDIA driver does not answer (code {code})", "look at `nvidia-smi`")
    library.nvmlErrorString.restype = ctypes.c_char_p
    return library


def _call(function: str, *arguments: Any) -> None:
    library = _library()
    if code := getattr(library, function)(*arguments):
        raise ManagementError(f"{function}: {library.nvmlErrorString(code).decode()}")
