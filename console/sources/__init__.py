"""Where records come from: a daemon (`live`) or a journal file (`journal`), behind one protocol.

Invariant: both yield the same records in the same order, so whatever is built on them cannot tell a
live run from a replay except by asking `Source.live`.
Not for: folding records (`state.reducer`) or showing them.
"""
