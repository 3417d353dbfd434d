"""Read the requests of a scope for statistics: all of them, or one in n of very many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import Floats
from specscope_server.acceptance.survival import depth_of
from specscope_server.models import Request
from specscope_server.requests.filters import Scope
from specscope_server.store.canary import is_traffic
from specscope_server.store.sampling import one_in

MAX_REQUESTS = 20_000
"""Requests that statistics are computed from; of more, one in n is taken, over the whole range."""
GroupKey: TypeAlias = tuple[int, int]
"""(launch id, K)."""


class Row(NamedTuple):
    """One request, as far as statistics need it."""

    number: int
    launch_id: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cycles: int
    accepted: int
    proposed: int | None
    histogram: list[int] | None
    depth: int | None
    """K, None where it may have varied between cycles or is not known."""
    labels: str
    """JSON object."""


@dataclass
class Population:
    """Requests that say verify calls and accepted drafts, oldest first."""

    total: int
    """Requests in scope, with counts or without."""
    every: int
    """1 = all were read; n = about one request in n."""
    without_counts: int
    """Of those read: requests that say nothing about speculation."""
    rows: Sequence[Row]

    @cached_property
    def cycles(self) -> Floats:
        """Return m, shape (requests,)."""
        return np.array([row.cycles for row in self.rows], dtype=np.float64)

    @cached_property
    def accepted(self) -> Floats:
        """Return A, shape (requests,)."""
        return np.array([row.accepted for row in self.rows], dtype=np.float64)

    @cached_property
    def lengths(self) -> Floats:
        """Return τ of each request, shape (requests,)."""
        return np.asarray(1 + self.accepted / self.cycles)

    @cached_property
    def groups(self) -> dict[GroupKey, list[int]]:
        """Return the places of the requests of each launch and depth; where K may have varied, of none."""
        found: dict[GroupKey, list[int]] = {}
        for place, row in enumerate(self.rows):
            if row.depth is not None and row.launch_id is not None:
                found.setdefault((row.launch_id, row.depth), []).append(place)
        return found

    def note(self) -> str:
        """Return what must be said when not all were read."""
        if self.every == 1:
            return ""
        words = f"Computed from about one request in {self.every:,}, of {self.total:,}"
        return f"{words}: choose a shorter range for all."


def read_population(session: Session, scope: Scope, most: int = MAX_REQUESTS) -> Population:
    """Return the requests of a scope, without those of canaries: they are nobody's traffic."""
    conditions = [*scope.conditions(), is_traffic()]
    total = session.scalar(select(func.count()).select_from(Request).where(*conditions)) or 0
    every = max(-(-total // most), 1)
    query = select(
        Request.id, Request.launch_id, Request.prompt_tokens, Request.completion_tokens, Request.verify_calls,
        Request.accepted_drafts, Request.proposed_drafts, Request.accepted_histogram, Request.labels,
    ).where(*conditions)  # fmt: skip
    if every > 1:
        query = query.where(one_in(Request.id, every))
    found: list[Any] = list(session.execute(query.order_by(Request.time_ms, Request.id)))
    rows = list(_rows(found, scope))
    return Population(len(found) if every == 1 else total, every, len(found) - len(rows), rows)


def _rows(found: Sequence[Any], scope: Scope) -> Iterator[Row]:
    for number, launch_id, prompt, output, calls, accepted, proposed, text, labels in found:
        if not calls or accepted is None:
            continue
        histogram: list[int] | None = None if text is None else orjson.loads(text)
        launch = scope.launches.get(launch_id)
        depth = None if launch is None else depth_of(launch, calls, proposed, histogram or ())
        yield Row(number, launch_id, prompt, output, calls, accepted, proposed, histogram, depth, labels)


def matrix_of(rows: Sequence[Row], depth: int) -> NDArray[np.int64]:
    """Return the histograms of rows that have one, shape (requests, K + 1)."""
    return np.array(
        [(*row.histogram, *[0] * (depth + 1))[: depth + 1] for row in rows if row.histogram is not None],
        dtype=np.int64,
    ).reshape(-1, depth + 1)
