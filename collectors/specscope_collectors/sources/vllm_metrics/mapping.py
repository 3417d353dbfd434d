"""What vLLM's ``/metrics`` says in canonical terms."""

from __future__ import annotations

from collections.abc import Collection

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.mapping import map_by_table
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.sources.vllm_metrics.renaming import WITHOUT_TOTAL, renamed
from specscope_collectors.sources.vllm_metrics.speculation import settle
from specscope_collectors.sources.vllm_metrics.table import (
    CAME_WITH,
    ENGINE_VERSIONS,
    PREFIXES,
    STARTED,
    TABLE,
)


def map_exposition(exposition: Exposition) -> Mapped:
    """Return the canonical series of ``exposition``."""
    mapped = map_by_table(renamed(exposition), TABLE, settle)
    mapped.started = exposition.samples.get((STARTED, ()))
    mapped.version_from_metric_set = version_of(exposition.names)
    return mapped


def version_of(names: Collection[str]) -> str | None:
    """Return the oldest of `ENGINE_VERSIONS` that may have written ``names``; None if vLLM did not."""
    spelled = {WITHOUT_TOTAL.get(name, name) for name in names}
    bare = {name[len(prefix) :] for name in spelled for prefix in PREFIXES if name.startswith(prefix)}
    newest_first = reversed(ENGINE_VERSIONS)
    found = next((version for version in newest_first if bare & CAME_WITH.get(version, frozenset())), None)
    return found or (ENGINE_VERSIONS[0] if bare else None)
