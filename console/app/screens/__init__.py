"""The screens: each takes the session's state and paints view models.

Invariant: a screen refreshes from the state as it is, whatever happened since it last looked, and
shows in the footer only what works now.
Not for: deciding what a figure means (`console.views`).
"""
