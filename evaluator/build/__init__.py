"""Turns a source text into built extensions, in sandboxes without a device.

Invariant: candidate Python runs in a sandbox without a compiler, candidate C++ is compiled in a sandbox without candidate Python, and only
the judge writes the cache. So the text that was scanned is the text that was compiled.
Not for: loading what was built (`evaluator.runner.extension`).
"""
