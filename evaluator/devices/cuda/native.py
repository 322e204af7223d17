"""Compiles the runner's loop once per interpreter and keeps it: our own source, with the machine's C compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from evaluator.errors import EnvironmentFault

SOURCE = Path(__file__).with_name("inside") / "loop.c"
TIMEOUT_S = 60


def native_loop(cache: Path) -> Path:
    """The compiled loop below `cache`; an EnvironmentFault where it cannot be compiled."""
    source = SOURCE.read_bytes()
    key = hashlib.sha256(source + sys.version.encode()).hexdigest()[:32]
    target = cache / "native" / key / "ratchet_loop.so"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = Path(work) / target.name
        include = sysconfig.get_path("include", scheme="posix_prefix")
        command = [_compiler(), "-O2", "-shared", "-fPIC", f"-I{include}", str(SOURCE), "-o", str(made), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode:
            raise EnvironmentFault(
                f"the runner's loop does not compile: {done.stderr.strip()[-400:]}", "install a C compiler and Python's headers"
            )
        made.chmod(0o644)
        os.replace(made, target)
    target.parent.chmod(0o755)
    return target


def _compiler() -> str:
    for name in ("cc", "gcc", "clang"):
        if (found := shutil.which(name)) is not None:
            return found
    raise EnvironmentFault("no C compiler: the runner's loop cannot be compiled", "install one: `apt-get install gcc`")
