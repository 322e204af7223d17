"""Mounted into every runner's sandbox; standard library and torch only."""
