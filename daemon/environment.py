"""The environment that children of the daemon get.

Invariant: no child can speak to the service manager as the daemon (`NOTIFY_SOCKET`, `WATCHDOG_*`,
`LISTEN_*`), and no judge sees a credential.
Not for: the sandbox's environment, which the judge clears entirely.
"""

from __future__ import annotations

from collections.abc import Mapping

_SERVICE_PREFIXES = ("NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "MAINPID", "INVOCATION_ID", "JOURNAL_STREAM", "CREDENTIALS_DIRECTORY")
_SECRET_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS", "_AUTH_KEY")


def without_service(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without what belongs to the service manager."""
    return {name: value for name, value in environment.items() if not name.startswith(_SERVICE_PREFIXES)}


def for_judge(environment: Mapping[str, str]) -> dict[str, str]:
    """What a judge inherits: no service manager, no keys, unbuffered lines of progress."""
    kept = without_service(environment)
    kept = {name: value for name, value in kept.items() if not name.upper().endswith(_SECRET_SUFFIXES)}
    return {**kept, "PYTHONUNBUFFERED": "1"}
