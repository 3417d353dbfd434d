"""Which metrics of the known engines are looked for in a Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from specscope_collectors.engines import engines, telling_names, wanted_names
from specscope_collectors.exposition.table import DEMO_MARKER, RANK_LABELS

UP = "up"
STARTED = "process_start_time_seconds"
BESIDE = frozenset({UP, STARTED, DEMO_MARKER})
"""What is asked for beside the engines' own metrics."""

ENGINE_LABELS = frozenset({
    *RANK_LABELS, "model_name", "engine_type", "pid", "le", "priority", "mode", "category", "is_streaming",
    "stage", "phase", "cache_source", "engine", "position", "finished_reason",
})  # fmt: skip
"""Labels that engines write themselves: on their series these are never taken for Prometheus' own."""

_HEAD = re.compile(r"[a-z]+[:_]")


@cache
def engine_names() -> frozenset[str]:
    """Return the names of all samples that are mapped or tell the version of an engine."""
    return (wanted_names() | telling_names()) - BESIDE


def heads(names: Iterable[str]) -> frozenset[str]:
    """Return what the names begin with, e.g. ``sglang:``."""
    return frozenset(match[0] for name in names if (match := _HEAD.match(name)))


def pattern() -> str:
    """Return the regular expression of everything that may be an engine's."""
    return f"(?:{'|'.join(sorted(heads(engine_names())))}).+"


def spelt_as(there: Iterable[str]) -> frozenset[str]:
    """Return all names of the engines in the spelling that is there: some of them appear only later."""
    used = heads(there)
    return frozenset(name for name in engine_names() if heads((name,)) <= used)


def is_engine(names: Iterable[str]) -> bool:
    """Tell whether any of the names is an engine's, and not only one that stands beside them."""
    found = list(names)
    return any(engine.claims(found) for engine in engines())
