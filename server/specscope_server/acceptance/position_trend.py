"""Acceptance by draft position over time: a cell for each bucket and position, from the best evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.position_counters import of_counters
from specscope_server.acceptance.position_counts import PositionGrid, Source, best_counts, of_requests
from specscope_server.acceptance.position_trend_schemas import PositionCell, PositionTrend
from specscope_server.acceptance.positions import HOW_TO_SEND
from specscope_server.acceptance.service import launch_brief
from specscope_server.acceptance.statistics import MIN_CYCLES
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.params import TimeRange
from specscope_server.store.lookup import choose_launches, server_by_name

SOURCES: tuple[Source, ...] = (of_counters, of_requests)
"""Best evidence first."""
MOST_COLUMNS = 72
"""Buckets of a range whose step is not chosen: narrower ones hold too few cycles to say anything."""


def position_trend(session: Session, server: str, launch: str | None, span: TimeRange) -> PositionTrend:
    """Return the cells over ``span``; raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, server)
    launches = {item.id: item for item in choose_launches(session, row.id, launch, span.from_ms, span.to_ms)}
    window = replace(span, points=min(span.points, MOST_COLUMNS)).window()
    inside = Window(window.from_ms, span.to_ms, window.step_ms)
    grid = best_counts(session, row.id, launches, inside, SOURCES) if launches else None
    notes = [HOW_TO_SEND] if grid is None else [*grid.notes]
    return PositionTrend.model_validate(
        {
            "server": server, "from": to_iso(span.from_ms), "to": to_iso(span.to_ms),
            "step_seconds": window.step_ms / 1000, "is_demo": any(item.is_demo for item in launches.values()),
            "launches": [launch_brief(item) for item in launches.values()],
            "evidence": "" if grid is None else grid.evidence,
            "times": [to_iso(window.from_ms + index * window.step_ms) for index in range(window.buckets)],
            "positions": 0 if grid is None else grid.cycles.shape[1],
            "cells": [] if grid is None else _cells(grid, window), "note": " ".join(notes),
        }
    )  # fmt: skip


def _cells(grid: PositionGrid, window: Window) -> list[PositionCell]:
    """Return the observed cells by time and position; where no cycle reached, there is none."""
    return [
        PositionCell(
            time=to_iso(window.from_ms + int(bucket) * window.step_ms),
            position=int(column) + 1,
            cycles=(cycles := int(grid.cycles[bucket, column])),
            offered=(offered := int(grid.offered[bucket, column])),
            accepted=(accepted := int(grid.accepted[bucket, column])),
            survival=accepted / cycles,
            conditional=accepted / offered if offered else None,
            is_few=cycles < MIN_CYCLES,
            is_few_offered=offered < MIN_CYCLES,
        )
        for bucket, column in np.argwhere(grid.cycles > 0)
    ]
