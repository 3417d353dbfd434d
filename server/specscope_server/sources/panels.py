"""Figures of the sources' health, served by name."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.sources.figures import (
    SOURCE_DURATION,
    SOURCE_UP,
    SourceHistory,
    source_duration_figure,
    source_up_figure,
)
from specscope_server.store.lookup import newest_launch, server_by_name
from specscope_server.store.series_reader import Buckets, find_series, read_buckets


def _history(
    session: Session, query: PanelQuery, metric: str, summary: Literal["mean", "max"]
) -> SourceHistory:
    """Scrape health belongs to the server, not to a launch, so the choice of a launch does not narrow it."""
    server = server_by_name(session, query.server)
    window = query.range.window()
    found = find_series(session, metrics=[metric], server_id=server.id)
    read = read_buckets(session, found, window)
    values = {
        one.labels.get("source", "?"): _values(read[one.id], summary) for one in found if one.id in read
    }
    launch = newest_launch(session, server.id)
    return SourceHistory(
        times_ms=range(window.from_ms, window.from_ms + window.buckets * window.step_ms, window.step_ms),
        step_ms=window.step_ms,
        to_ms=window.to_ms,
        values=values,
        is_demo=bool(launch and launch.is_demo),
    )


def _values(buckets: Buckets, summary: Literal["mean", "max"]) -> list[float | None]:
    """Return one value per bucket, None where nothing was attempted."""
    raw = buckets.sum / np.maximum(buckets.n, 1) if summary == "mean" else buckets.max
    return [float(value) if n else None for value, n in zip(raw, buckets.n, strict=True)]


def _up(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return source_up_figure(_history(session, query, "scrape.up", "mean"), theme)


def _duration(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return source_duration_figure(_history(session, query, "scrape.duration", "max"), theme)


PANELS = (Panel(SOURCE_UP, _up), Panel(SOURCE_DURATION, _duration))
