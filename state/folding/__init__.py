"""Handlers that fold one kind of record each into a run's state, grouped by what they change.

Invariant: a handler reads its record and the state and nothing else, and never raises on a record
that merely refers to something unknown: that is an alert in the state.
Not for: choosing the handler or counting records (`state.reducer`).
"""
