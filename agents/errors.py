"""What can go wrong in `agents/`, one tree.

AgentsError             base: `code` (exit code), `message`, `hint`
├─ UnknownClient        3  a model client that does not exist
├─ BadSession           2  a session or replay file that cannot be used
├─ SessionEnded         1  a scripted agent was asked for a reply its session does not hold
├─ Diverged             1  a replayed run took another path than the journal it replays
├─ ClientFailed         3  a model client gave up
└─ AgentGaveUp          1  an agent used up its turns or stopped calling tools
ToolError is not of this tree: it is an answer to the model, never to the user.
Invariant: a message is one or two lines that a person can act on. Not for: bugs, which keep their traceback.
"""

from __future__ import annotations


class AgentsError(Exception):
    """Base of the errors that reach a person."""

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnknownClient(AgentsError):
    """A model client that does not exist (in this version)."""

    code = 3


class BadSession(AgentsError):
    """A session or replay file that is missing, malformed or of a newer version."""

    code = 2


class SessionEnded(AgentsError):
    """A scripted agent was asked for a reply that its session does not hold."""


class Diverged(AgentsError):
    """A replayed run took another path than the journal it replays."""


class ClientFailed(AgentsError):
    """A model client gave up: nothing it can do without a person."""

    code = 3


class AgentGaveUp(AgentsError):
    """An agent used up its turns, or kept answering without calling a tool."""


class ToolError(Exception):
    """A refusal that goes back to the model as the result of its call, with what to do instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
