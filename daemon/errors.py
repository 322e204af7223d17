"""What the daemon and its client tell a person when something cannot be done.

    DaemonError
    ├── BadRequest (2)         a parameter or a body that cannot be understood
    │   └── NotFound (2)       a run, a candidate or an endpoint that does not exist
    ├── Refused (1)            understood, but not in the state that the run is in
    ├── EnvironmentFault (3)   the machine is not fit: no sandbox, no judge, no room
    │   ├── AlreadyRunning (3) another daemon holds the state directory or the socket
    │   ├── SocketUnusable (3) the socket's path is too long, taken or not ours
    │   └── StateUnusable (3)  the state directory is read-only, not a directory, or newer
    ├── StreamReset (1)        the journal behind a stream is not the one that was followed
    └── NotReachable (4)       no daemon answers on the socket

Invariant: `message` and `hint` are one line each and fit to print as they are.
Not for: bugs. Those keep their traceback.
"""

from __future__ import annotations


class DaemonError(Exception):
    """Base of everything the daemon reports by name."""

    code = 1
    """Exit code of a command that ends with it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.hint = " ".join(hint.split())


class BadRequest(DaemonError):
    """A parameter or a body that cannot be understood."""

    code = 2


class NotFound(BadRequest):
    """Something named in a request does not exist."""


class Refused(DaemonError):
    """The request is understood and cannot be granted as things are."""


class EnvironmentFault(DaemonError):
    """The machine is not fit for what was asked."""

    code = 3


class AlreadyRunning(EnvironmentFault):
    """Another daemon holds the state directory or the socket."""


class SocketUnusable(EnvironmentFault):
    """The socket cannot be bound where it was asked for."""


class StateUnusable(EnvironmentFault):
    """The state directory cannot be used."""


class StreamReset(DaemonError):
    """The journal behind a followed stream is another one now: take a new snapshot."""


class NotReachable(DaemonError):
    """No daemon answers on the socket."""

    code = 4
