"""The daemon's log: one JSON object a line on stderr.

Invariant: what comes from models, candidates or peers is data in a field, never part of the message's
form; uvicorn's and other libraries' records go the same way.
Not for: what an operator must see; that is journalled.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog


def configure(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send every log of this process to `stream` (stderr) as JSON lines."""
    target = stream or sys.stderr
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=max(level, logging.WARNING), force=True)


class _Forward(logging.Handler):
    """Hands records of the standard library's logging on."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger()
        logger.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)
