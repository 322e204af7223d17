"""Model clients: `scripted` (a session file) and `replay` (a journal), behind one interface.

`open_client` turns the `[agents]` table of a run's configuration into the client it names.
Invariant: a name that has no client is refused before a run starts. Not for: prompts or tools.
"""

from __future__ import annotations

from agents.clients.interface import ClientFactory, Message, ModelClient, ModelReply, ModelRequest, ToolAnswer, ToolSpec
from agents.clients.opening import open_client

__all__ = ["ClientFactory", "Message", "ModelClient", "ModelReply", "ModelRequest", "ToolAnswer", "ToolSpec", "open_client"]
