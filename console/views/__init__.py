"""What every screen shows, as pure functions from a run's state (and selected records) to lines.

Invariant: nothing here imports Textual, reads a clock, a file or a socket; the same state gives the
same lines, so a screen, plain mode and a replay cannot differ.
Not for: painting (`console.app`) or fetching (`console.sources`).
"""
