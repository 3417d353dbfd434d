"""What SGLang's ``/metrics`` says in canonical terms."""

from __future__ import annotations

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.mapping import Refuse, map_by_table
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.sources.sglang_metrics import spec_gauges
from specscope_collectors.sources.sglang_metrics.table import TABLE
from specscope_collectors.sources.sglang_metrics.version import version_of


def map_exposition(exposition: Exposition, *, adaptive: bool = False) -> Mapped:
    """Return the canonical series of ``exposition``.

    ``adaptive``: the engine is known to change its draft depth, so gauges of one window may speak of two
    depths (see `spec_gauges`).
    """

    def settle(mapped: Mapped, refuse: Refuse) -> None:
        spec_gauges.settle(mapped.levels, is_adaptive=adaptive, refuse=refuse)

    mapped = map_by_table(exposition, TABLE, settle)
    mapped.version_from_metric_set = version_of(exposition.names, has_ranks=bool(mapped.ranks))
    return mapped
