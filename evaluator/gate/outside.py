"""`python -P outside.py PROFILE`: asks KernelGuard about the source on stdin and prints its answer as JSON.

A process of its own, because its patterns backtrack: a source can keep it busy for ever, and a process
can be ended. Ends with 3 where KernelGuard is not installed.
Not for: use by hand; `evaluator.gate.advisory` starts it.
"""

from __future__ import annotations

import json
import sys

NOT_INSTALLED = 3


def main(profile: str) -> int:
    """Print classification and pattern names."""
    try:
        import kernelguard
    except ImportError:
        return NOT_INSTALLED
    kernelguard.configure_runtime(profile=profile)
    answer = kernelguard.analyze_code(sys.stdin.buffer.read().decode("utf-8", "replace"), compute_structural_hash=False)
    patterns = sorted({str(match.get("pattern", "?")) for match in answer.get("matched_patterns", [])})
    print(json.dumps({"classification": str(answer.get("classification", "unknown")), "patterns": patterns}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
