"""Whose log it is, told by its lines: every folder under ``sources/`` with a module ``log_format``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from specscope_collectors import sources
from specscope_collectors.logs.options import AnyLogReader, LogOptions

FIRST = "sglang_log"
"""Format that a log is taken for when nothing in its beginning decides."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One engine's log."""

    source: str
    marks: tuple[bytes, ...]
    """Text that only this engine's log holds."""
    reader: Callable[[LogOptions], AnyLogReader]


@cache
def log_formats() -> tuple[LogFormat, ...]:
    """Return all formats, the one that is assumed first in front."""
    names = [module.name for module in pkgutil.iter_modules(sources.__path__) if module.ispkg]
    paths = [f"{sources.__name__}.{name}.log_format" for name in sorted(names)]
    found: list[LogFormat] = [importlib.import_module(path).FORMAT for path in paths if find_spec(path)]
    return tuple(sorted(found, key=lambda log_format: log_format.source != FIRST))


def format_of(beginning: bytes) -> LogFormat:
    """Return the format whose marks occur most often."""
    counts = {
        log_format.source: sum(beginning.count(mark) for mark in log_format.marks)
        for log_format in log_formats()
    }
    return max(log_formats(), key=lambda log_format: counts[log_format.source])
