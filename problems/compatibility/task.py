"""Stand-in for a GPU MODE folder's `task.py`: the type names that references and submissions import.

Invariant: names only, nothing runs. Not for: folders that bring their own `task.py`.
"""

from typing import Any

input_t = Any
output_t = Any
TestSpec = dict[str, Any]
