"""How this program is typed here: `ratchet` where the shell would find this very one, else the path that was typed.

Invariant: a command in a hint can be copied and run as it stands.
Not for: what hints say.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path

NAME = "ratchet"
_COMMAND = re.compile(rf"(?<![\w./-]){NAME} (?=[a-z-])")


@functools.cache
def program() -> str:
    """What to type instead of `ratchet`."""
    typed = Path(sys.argv[0])
    if typed.name != NAME or not typed.exists():
        return NAME
    found = shutil.which(NAME)
    if found is not None and Path(found).resolve() == typed.resolve():
        return NAME
    near = os.path.relpath(typed)
    return near if not near.startswith("..") else str(typed.absolute())


def typed(words: str) -> str:
    """`words` with every command in them as it is typed here."""
    return _COMMAND.sub(f"{program()} ", words) if program() != NAME else words
