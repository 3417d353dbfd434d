"""Reads which ranks of a launch report."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy.orm import Session

from specscope_server.kit.coverage import Coverage, Sizes, coverage
from specscope_server.models import Launch
from specscope_server.store.latest import newest_times
from specscope_server.store.series_reader import find_series

SCHEDULER_METRICS = ("requests.running", "throughput.generated", "spec.accept_length")
"""Metrics that each scheduler writes for itself: they show which ranks report."""


def read_coverage(session: Session, launch: Launch, stale_after_ms: int) -> Coverage:
    """Return which ranks reported when the launch was last seen."""
    series = find_series(session, metrics=SCHEDULER_METRICS, launch_ids=[launch.id])
    newest_ms = newest_times(session, [ref.id for ref in series])
    since_ms = launch.last_seen_ms - stale_after_ms
    return coverage(
        sizes_of(launch), [ref.labels for ref in series if newest_ms.get(ref.id, since_ms) > since_ms]
    )


def sizes_of(launch: Launch) -> Sizes:
    """Return what a launch says about its ranks."""
    config: Any = orjson.loads(launch.config)
    node = config.get("node_rank") if isinstance(config, dict) else None
    every = config.get("enable_metrics_for_all_schedulers") if isinstance(config, dict) else None
    return Sizes(
        engine=launch.engine,
        version=launch.engine_version,
        tp=launch.tp_size,
        dp=launch.dp_size,
        pp=launch.pp_size,
        nodes=launch.nnodes,
        node=node if isinstance(node, int) else None,
        dp_attention=launch.enable_dp_attention is True,
        all_schedulers=every is True,
    )
