"""Device memory that crosses processes, through the CUDA driver's virtual memory calls.

An `Allocation` is physical memory behind a handle that can be handed over as a POSIX file descriptor;
a `Mapping` is a range of addresses that shows one or more of them. Each call works on the calling
thread's current context (torch's).
Source: CUDA driver API, "Virtual Memory Management" (cuMemCreate, cuMemMap, cuMemExportToShareableHandle).
Not for: memory that stays in one process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

PINNED, ON_DEVICE, POSIX_DESCRIPTOR, READ_WRITE = 1, 1, 1, 3


class DriverError(RuntimeError):
    """A call of the driver failed; the message names it and the driver's reason."""


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Flags(ctypes.Structure):
    _fields_ = [("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 4)]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("security", ctypes.c_void_p),
        ("flags", _Flags),
    ]


@cache
def library() -> ctypes.CDLL:
    """The driver's library."""
    return ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: Any) -> None:
    """Call a driver function; DriverError with the driver's own words where it fails."""
    code = getattr(library(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        library().cuGetErrorString(code, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'error').decode()} ({code})")


@dataclass(slots=True)
class Allocation:
    """Physical device memory behind a handle."""

    handle: int
    size: int

    @classmethod
    def create(cls, size: int, device: int = 0) -> Allocation:
        """At least `size` bytes that can be exported."""
        rounded = -(-max(1, size) // granularity(device)) * granularity(device)
        handle, properties = ctypes.c_ulonglong(), _properties(device)
        call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(rounded), ctypes.byref(properties), ctypes.c_ulonglong(0))
        return cls(handle.value, rounded)

    @classmethod
    def imported(cls, descriptor: int, size: int) -> Allocation:
        """What another process exported; the descriptor stays the caller's."""
        handle = ctypes.c_ulonglong()
        call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor), POSIX_DESCRIPTOR)
        return cls(handle.value, size)

    @classmethod
    def behind(cls, address: int) -> tuple[Allocation, int]:
        """The exportable memory behind an address of this process, and the address at which it begins."""
        base, size = address_range(address)
        handle = ctypes.c_ulonglong()
        call("cuMemRetainAllocationHandle", ctypes.byref(handle), ctypes.c_void_p(address))
        return cls(handle.value, size), base

    def export(self) -> int:
        """A new descriptor for another process."""
        descriptor = ctypes.c_int(-1)
        exporting = (ctypes.c_ulonglong(self.handle), POSIX_DESCRIPTOR, ctypes.c_ulonglong(0))
        call("cuMemExportToShareableHandle", ctypes.byref(descriptor), *exporting)
        return descriptor.value

    def release(self) -> None:
        """Give the handle back; the memory lives on while it is mapped anywhere."""
        call("cuMemRelease", ctypes.c_ulonglong(self.handle))


class Mapping:
    """A range of addresses that shows allocations one after another."""

    def __init__(self, allocations: Sequence[Allocation], device: int = 0) -> None:
        self.size = sum(a.size for a in allocations)
        pointer, zero = ctypes.c_ulonglong(), ctypes.c_ulonglong(0)
        call("cuMemAddressReserve", ctypes.byref(pointer), ctypes.c_size_t(self.size), ctypes.c_size_t(0), zero, zero)
        self.address = pointer.value
        offset = 0
        for allocation in allocations:
            place = ctypes.c_ulonglong(self.address + offset)
            call("cuMemMap", place, ctypes.c_size_t(allocation.size), ctypes.c_size_t(0), ctypes.c_ulonglong(allocation.handle), zero)
            offset += allocation.size
        access = _Access(_Location(ON_DEVICE, device), READ_WRITE)
        call("cuMemSetAccess", ctypes.c_ulonglong(self.address), ctypes.c_size_t(self.size), ctypes.byref(access), ctypes.c_size_t(1))

    def close(self) -> None:
        """Take the addresses away; nothing may use them any more."""
        call("cuMemUnmap", ctypes.c_ulonglong(self.address), ctypes.c_size_t(self.size))
        call("cuMemAddressFree", ctypes.c_ulonglong(self.address), ctypes.c_size_t(self.size))


def address_range(address: int) -> tuple[int, int]:
    """Where the allocation behind a device address begins, and its bytes."""
    base, size = ctypes.c_ulonglong(), ctypes.c_size_t()
    call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_ulonglong(address))
    return base.value, size.value


@cache
def granularity(device: int = 0) -> int:
    """Bytes that every allocation is a multiple of."""
    size, properties = ctypes.c_size_t(), _properties(device)
    call("cuMemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(properties), 0)
    return size.value


def prepared_copy(target: int, source: int, nbytes: int) -> Callable[[], None]:
    """A copy within the device that only has to be started: returns at once."""
    function = library().cuMemcpyDtoDAsync_v2
    arguments = (ctypes.c_ulonglong(target), ctypes.c_ulonglong(source), ctypes.c_size_t(nbytes), None)

    def start() -> None:
        if code := function(*arguments):
            raise DriverError(f"a copy within the device failed ({code})")

    return start


def synchronize() -> None:
    """Wait for everything of this context."""
    call("cuCtxSynchronize")


def reset_persisting_cache() -> None:
    """Make every line of the L2 cache that was set to persist an ordinary one."""
    call("cuCtxResetPersistingL2Cache")


def _properties(device: int) -> _Properties:
    return _Properties(PINNED, POSIX_DESCRIPTOR, _Location(ON_DEVICE, device), None, _Flags())
