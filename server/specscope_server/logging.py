"""Structured logs: a sentence-like event name with key=value pairs, as text for people or JSON for
machines.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict

_PLAIN_TRACES = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
"""Local variables may hold secrets, so they stay out of the logs."""


def configure_logging(
    log_format: Literal["text", "json"] = "text", level: str = "info", stream: TextIO | None = None
) -> None:
    """Send our logs and those of libraries to ``stream`` (default stderr) in one format.

    May be called again: the newest call wins.
    """
    out = stream or sys.stderr
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(log_format, out),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "uvicorn", "uvicorn.error", "uvicorn.access", "alembic"):
        logging.getLogger(noisy).setLevel(max(root.level, logging.WARNING))


def _renderers(log_format: str, out: TextIO) -> list[structlog.types.Processor]:
    if log_format == "json":
        return [structlog.processors.ExceptionRenderer(_PLAIN_TRACES), structlog.processors.JSONRenderer()]
    return [
        _without_control_characters,
        structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback),
    ]


def _without_control_characters(_logger: Any, _name: str, entry: EventDict) -> EventDict:
    """Escape what would steer a terminal: paths and engine texts are untrusted (JSON escapes it anyway)."""
    return {key: _visible(value) if isinstance(value, str) else value for key, value in entry.items()}


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
