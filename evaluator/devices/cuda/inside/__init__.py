"""Mounted into every runner's sandbox; standard library and torch only."""

LOOP = "/ratchet/native/ratchet_loop.so"
"""Where the judge mounts `loop.c`, compiled."""
