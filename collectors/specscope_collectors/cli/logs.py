"""Logs of `specscope collect`: event names with key=value pairs, as text for people or JSON for machines."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict

LogFormat = Literal["text", "json"]
_PLAIN_TRACES = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
"""Local variables may hold secrets, so they stay out of the logs."""


def configure_logs(log_format: str, level: str) -> None:
    """Send our logs and warnings of libraries to standard error."""
    chosen: list[structlog.types.Processor] = [structlog.dev.ConsoleRenderer(colors=False)]
    if log_format == "json":
        chosen = [structlog.processors.ExceptionRenderer(_PLAIN_TRACES), structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_control_characters,
            *chosen,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")


def _without_control_characters(_logger: Any, _name: str, entry: EventDict) -> EventDict:
    """Escape what would steer a terminal: names and engine texts are untrusted."""
    return {key: _visible(value) if isinstance(value, str) else value for key, value in entry.items()}


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
