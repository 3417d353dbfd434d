"""Counts of each draft position over time: one shape for every evidence that can fill it.

An evidence is a `Source`: it fills a `PositionGrid`, or returns None when the window holds nothing of its
kind; `best_counts` takes, launch by launch, the first that has something. A counter of accepted drafts by
position, read inside the engine, covers every cycle as it happens (`position_counters`), so it goes before
`of_requests`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.acceptance.requests import finished_in
from specscope_server.acceptance.survival import depth_of
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch, Request
from specscope_server.store.sampling import one_in

Counts: TypeAlias = NDArray[np.int64]
MAX_REQUESTS = 20_000
"""Requests that one answer reads; of more, one in n is taken, so that no stretch of time is left out."""


@dataclass(frozen=True, slots=True)
class PositionGrid:
    """Counts by bucket and draft position, each of shape (buckets, K); column k − 1 is position k.

    ``cycles`` ≥ ``offered`` ≥ ``accepted``: cycles whose depth reaches k, those in which all drafts before k
    were accepted, and those in which draft k was too. A bucket of zeros was not observed.
    """

    cycles: Counts
    offered: Counts
    accepted: Counts
    evidence: str
    notes: tuple[str, ...] = ()
    covers: frozenset[int] = frozenset()
    """Ids of the launches whose cycles are in it."""


Source: TypeAlias = Callable[[Session, int, Mapping[int, Launch], Window], PositionGrid | None]
"""(session, server id, launches by id, window) → counts; None = nothing of this kind."""


def of_requests(
    session: Session, server_id: int, launches: Mapping[int, Launch], window: Window
) -> PositionGrid | None:
    """Return the counts from histograms of finished requests, each in the bucket in which it finished."""
    scope = (*finished_in(server_id, list(launches), window), Request.accepted_histogram.is_not(None))
    total = session.scalar(select(func.count()).select_from(Request).where(*scope)) or 0
    if not total:
        return None
    every = -(-total // MAX_REQUESTS)
    query = select(
        Request.time_ms, Request.launch_id, Request.verify_calls, Request.proposed_drafts,
        Request.accepted_histogram,
    ).where(*scope)  # fmt: skip
    if every > 1:
        query = query.where(one_in(Request.id, every))
    places, histograms, varied = [], [], 0
    rows: list[Any] = list(session.execute(query))
    for time_ms, launch_id, calls, proposed, text in rows:
        histogram = orjson.loads(text)
        depth = depth_of(launches[launch_id], calls, proposed, histogram)
        if depth is None:
            varied += 1
        else:
            places.append((time_ms - window.from_ms) // window.step_ms)
            histograms.append((*histogram, *[0] * (depth + 1))[: depth + 1])
    notes = [f"About one request in {every} was read, of {total:,}."] if every > 1 else []
    if varied:
        notes.append(f"Left out, because K may have varied between their cycles: {varied:,} requests.")
    covers = frozenset(row[1] for row in rows)
    return grid_of(
        places, histograms, window.buckets, "histograms of finished requests", tuple(notes), covers
    )


def grid_of(
    places: Sequence[int], histograms: Sequence[Sequence[int]], buckets: int, evidence: str,
    notes: tuple[str, ...] = (), covers: frozenset[int] = frozenset(),
) -> PositionGrid:  # fmt: skip
    """Return the grid of histograms h[0…K], one for each place (bucket); their K may differ."""
    deepest = max((len(histogram) - 1 for histogram in histograms), default=0)
    shape = (buckets, deepest)
    grid = PositionGrid(
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        evidence,
        notes,
        covers,
    )
    for size in {len(histogram) for histogram in histograms}:
        chosen = [index for index, histogram in enumerate(histograms) if len(histogram) == size]
        matrix = np.array([histograms[index] for index in chosen], dtype=np.int64)
        reached = np.cumsum(matrix[:, ::-1], axis=1)[:, ::-1]
        where = np.array([places[index] for index in chosen])
        np.add.at(grid.cycles[:, : size - 1], where, np.repeat(reached[:, :1], size - 1, axis=1))
        np.add.at(grid.offered[:, : size - 1], where, reached[:, :-1])
        np.add.at(grid.accepted[:, : size - 1], where, reached[:, 1:])
    return grid


def best_counts(
    session: Session, server_id: int, launches: Mapping[int, Launch], window: Window,
    sources: Sequence[Source],
) -> PositionGrid | None:  # fmt: skip
    """Return the counts of the best evidence for each launch, added up; ``sources``: best first."""
    grids: list[PositionGrid] = []
    rest = dict(launches)
    for source in sources:
        grid = source(session, server_id, rest, window) if rest else None
        if grid is not None:
            grids.append(grid)
            rest = {key: item for key, item in rest.items() if key not in grid.covers}
    return _added(grids) if grids else None


def _added(grids: Sequence[PositionGrid]) -> PositionGrid:
    """Return the sum of grids of different launches; their K may differ."""
    deepest = max(grid.cycles.shape[1] for grid in grids)

    def total(name: str) -> Counts:
        parts = [getattr(grid, name) for grid in grids]
        return np.asarray(sum(np.pad(part, ((0, 0), (0, deepest - part.shape[1]))) for part in parts))

    return PositionGrid(
        total("cycles"), total("offered"), total("accepted"),
        "; ".join(dict.fromkeys(grid.evidence for grid in grids)),
        tuple(note for grid in grids for note in grid.notes),
        frozenset().union(*(grid.covers for grid in grids)),
    )  # fmt: skip
