"""Takes a picture of the console: `ratchet replay JOURNAL` on a pseudo-terminal, saved by Textual as SVG.

    python -m evidence.bench.console_picture JOURNAL OUT.svg [--size 140x45] [--keys down,enter]

The command that runs is the one a person types; Textual presses the keys, saves the screen and leaves. The
picture's `<metadata>` names this command, the run, its journal's last hash, the evaluator's fingerprint and the device.
Invariant: nothing is drawn here; a screen that was not saved is an error (exit 1), never an old picture.
Not for: snapshot tests (`tests/console`), which compare screens of a journal written by hand.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from xml.sax.saxutils import escape

from state.lines import read_records

LIMIT_BYTES = 200_000
"""Of one picture: larger ones do not belong into the repository."""
_TIMEOUT_S = 120


def main(arguments: list[str] | None = None) -> int:
    """Take one picture; return the exit code."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ratchet-picture-") as directory:
        taken = Path(directory) / "screen.svg"
        said = replay(options.journal.absolute(), taken, size=_size(options.size), keys=options.keys, wait_s=options.wait)
        if not taken.is_file():
            print(f"no picture was taken; the console said:\n{said.decode(errors='replace')[-2000:]}", file=sys.stderr)
            return 1
        picture = labelled(taken.read_bytes(), options)
    if len(picture) > LIMIT_BYTES:
        print(f"the picture has {len(picture)} bytes, the limit is {LIMIT_BYTES}: take a smaller --size", file=sys.stderr)
        return 1
    options.out.write_bytes(picture)
    print(f"{options.out}: {len(picture)} bytes, {options.size}, keys {options.keys or 'none'}")
    return 0


def replay(journal: Path, out: Path, *, size: tuple[int, int], keys: str, wait_s: int) -> bytes:
    """Run `ratchet replay` on a terminal of `size` (columns, rows) until it has saved `out`; return what it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    command = [sys.executable, "-c", "from console.cli import main; main()", "replay", str(journal), "--no-mouse"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(out, keys, wait_s)) as process:
        os.close(theirs)
        try:
            said = _drain(ours)
            process.wait(_TIMEOUT_S)
        finally:
            process.kill()
            os.close(ours)
    return said


def labelled(picture: bytes, options: argparse.Namespace) -> bytes:
    """The same picture with the facts of the run it shows."""
    records = list(read_records(journal_of(options.journal)))
    results = [record.data["result"] for record in records if record.kind == "job.finished"]
    facts = {
        "command": f"python -m evidence.bench.console_picture JOURNAL {options.out} --size {options.size} --keys {options.keys!r}",
        "run": records[0].run,
        "records": len(records),
        "last_hash": records[-1].hash,
        "fingerprint": results[-1]["fingerprint"].get("sha256") if results else None,
        "device": results[-1]["context"].get("cpu") if results else None,
    }
    head, found, rest = picture.partition(b">")
    assert found, "an SVG begins with its root element"
    return head + found + f"\n<metadata>{escape(json.dumps(facts))}</metadata>".encode() + rest


def journal_of(path: Path) -> Path:
    """A journal, or the one in a run's directory."""
    return path / "attempts.jsonl" if path.is_dir() else path


def _environment(out: Path, keys: str, wait_s: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    picture = {
        "TEXTUAL_SCREENSHOT": str(wait_s),
        "TEXTUAL_SCREENSHOT_LOCATION": str(out.parent),
        "TEXTUAL_SCREENSHOT_FILENAME": out.name,
        "TEXTUAL_PRESS": keys,
        "TEXTUAL_ANIMATIONS": "none",
    }
    return {**kept, **picture, "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def _drain(terminal: int) -> bytes:
    """Read until the other side is closed, so that the console never waits for us."""
    said = bytearray()
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # Linux answers EIO when the last writer is gone
            return bytes(said)
        if not read:
            return bytes(said)
        said += read


def _size(words: str) -> tuple[int, int]:
    columns, _, rows = words.partition("x")
    return int(columns), int(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evidence.bench.console_picture", description="Take a picture of the console.")
    parser.add_argument("journal", type=Path, help="an attempts.jsonl or the directory of its run")
    parser.add_argument("out", type=Path, help="the SVG file to write")
    parser.add_argument("--size", default="140x45", help="columns x rows (default: %(default)s)")
    parser.add_argument("--keys", default="", help="keys to press first, with commas between them: down,enter")
    parser.add_argument("--wait", type=int, default=10, help="seconds from the first frame to the picture (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
