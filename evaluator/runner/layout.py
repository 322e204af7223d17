"""Layout of the two mailbox pages, shared by the judge and the runner.

Both pages are arrays of native 64-bit words. The request page is written by the judge alone (the
runner holds a read-only descriptor sealed against writing); the answer page by the runner alone.
A word is stored by one 8-byte move, and the nonce of a page is always stored last.
Not for: anything a candidate could profit from knowing; there are only an operation and a slot.
Standard library only: this file is mounted into the sandbox.
"""

from __future__ import annotations

REQUEST_BYTES = 4096
ANSWER_BYTES = 64 * 1024
MAX_OUTPUTS = 16
MAX_DIMS = 8

# Request page, in words.
NONCE = 0
OPERATION = 1
SLOT = 2

# Operations. A candidate's runner is only ever sent CALL, TOUCH and LEAVE.
CALL = 1
EMPTY = 2
CANARY = 3
LEAVE = 4
TOUCH = 5
BARE = 6
DISPATCH = 7

# Answer page, in words.
ECHO = 0
EVENT_NS = 1
CODE = 2
OUTPUTS = 3
TEXT_BYTES = 4
FIRST_OUTPUT = 16
OUTPUT_WORDS = 4 + 2 * MAX_DIMS
"""address, bytes spanned, dtype index, dimensions, then sizes and strides (in elements)."""
TEXT_OFFSET = 32 * 1024
"""Byte offset of the runner's message (UTF-8, at most TEXT_LIMIT bytes)."""
TEXT_LIMIT = 16 * 1024

# Codes of an answer.
OK = 1
RAISED = 2
BAD_OUTPUT = 3

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
ITEMSIZES = (4, 8, 2, 2, 8, 4, 2, 1, 1, 1, 8, 16)
