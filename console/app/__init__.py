"""The Textual console: screens that paint the lines of `console.views`.

Invariant: every figure and word on a screen comes from `console.views`; colours are theme variables
only; nothing that others wrote is parsed as markup.
Not for: talking to the daemon (`console.sources`) or folding records (`state.reducer`).
"""
