"""What one call of a subject spends its time on, as torch's profiler sees it from inside.

Everything here runs in the candidate's own process: it helps who wrote the candidate, and nothing rests on it.
Not for: any figure that a candidate is judged by.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

MOST_OPERATIONS = 64
NAME_LIMIT = 120


def profiled(forward: Callable[..., Any], inputs: tuple[Any, ...], *, calls: int, synchronise: Callable[[], None]) -> dict[str, Any]:
    """Run `forward` `calls` times by itself and as often under the profiler.

    Returns `plain_us` (median of the calls by themselves), `operations` (each: `name`, `where` as `host` or `device`, `calls` and
    `us`, its own time, both per call of `forward`) and `gaps_us` (the device's idle times between its kernels, over all calls).
    """
    plain = []
    with torch.no_grad():
        for _ in range(calls):
            begun = time.perf_counter_ns()
            forward(*inputs)
            synchronise()
            plain.append((time.perf_counter_ns() - begun) / 1e3)
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
        with profile(activities=activities) as seen:
            for _ in range(calls):
                forward(*inputs)
                synchronise()
    kernels = sorted(
        (float(event.time_range.start), float(event.time_range.end), str(event.name))
        for event in seen.events()
        if event.device_type != DeviceType.CPU
    )
    operations = [*_host(seen, calls), *_device(kernels, calls)]
    operations.sort(key=lambda operation: -operation["us"])
    return {
        "plain_us": statistics.median(plain),
        "operations": operations[:MOST_OPERATIONS],
        "gaps_us": gaps([(start, end) for start, end, _ in kernels])[:1024],
    }


def gaps(intervals: Sequence[tuple[float, float]]) -> list[float]:
    """Idle times between intervals (start, end) sorted by start; those that overlap leave none."""
    found = []
    until = intervals[0][1] if intervals else 0.0
    for start, end in intervals[1:]:
        if start > until:
            found.append(start - until)
        until = max(until, end)
    return found


def _host(seen: Any, calls: int) -> list[dict[str, Any]]:
    return [
        {"name": str(item.key)[:NAME_LIMIT], "where": "host", "calls": item.count / calls, "us": item.self_cpu_time_total / calls}
        for item in seen.key_averages()
        if item.device_type == DeviceType.CPU and item.self_cpu_time_total > 0
    ]


def _device(kernels: Sequence[tuple[float, float, str]], calls: int) -> list[dict[str, Any]]:
    spent: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter()
    for start, end, name in kernels:
        spent[name] += end - start
        times[name] += 1
    return [{"name": name[:NAME_LIMIT], "where": "device", "calls": times[name] / calls, "us": us / calls} for name, us in spent.items()]
