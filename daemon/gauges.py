"""Latest values that are worth a look and not worth a record: job progress, queue, device.

Invariant: one value a name, overwritten; a reader that misses some sees the newest. Values are plain
JSON and text in them is bounded.
Not for: anything that must survive a restart.
"""

from __future__ import annotations

from typing import Any

from daemon.tail import Tail

_TEXT_LIMIT = 400


class Gauges:
    """Latest values by run (`""` is the daemon itself) and name."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Any]] = {}
        self._versions = Tail()

    @property
    def changes(self) -> Tail:
        """Grows by one with every change: what a stream waits on."""
        return self._versions

    def set(self, run: str, name: str, value: Any) -> None:
        """Replace one value; None removes it."""
        values = self._values.setdefault(run, {})
        if value is None:
            values.pop(name, None)
        else:
            values[name] = _bounded(value)
        self._versions.advance(self._versions.seq + 1)

    def read(self, run: str) -> dict[str, Any]:
        """The values of one run together with the daemon's own."""
        return {**self._values.get("", {}), **self._values.get(run, {})}

    def forget(self, run: str) -> None:
        """Drop everything of a run that is at rest."""
        if self._values.pop(run, None):
            self._versions.advance(self._versions.seq + 1)


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT_LIMIT]
    if isinstance(value, dict):
        return {str(key): _bounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_bounded(item) for item in value]
    return value
