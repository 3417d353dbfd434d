"""How many of the cycles that the engine counted the reported requests account for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.kit.ranks import leaders
from specscope_server.kit.targets import of_target, target_names
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch, Request
from specscope_server.requests.filters import Scope
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

METRICS = ("spec.verify_calls", "spec.cycles")
"""Counted when requests finish, as they are reported; else as cycles happen (the probe, vLLM). Best first."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Cycles of finished requests by both counts."""

    of_requests: int
    of_engine: float | None
    """None: the engine's counter was not read in this window, or does not exist in its version."""

    @property
    def share(self) -> float | None:
        """Return the requests' part of the engine's cycles."""
        return self.of_requests / self.of_engine if self.of_engine else None


def read_coverage(session: Session, scope: Scope, window: Window) -> Coverage:
    """Return the coverage of the launches of a scope; labels and search do not narrow it."""
    query = select(func.sum(Request.verify_calls)).where(*scope.unfiltered())
    return Coverage(int(session.scalar(query) or 0), _counted(session, list(scope.launches.values()), window))


def _counted(session: Session, launches: list[Launch], window: Window) -> float | None:
    """Return the cycles of all launches together; None when none of them counts any."""
    found = find_series(session, metrics=METRICS, launch_ids=[one.id for one in launches]) if launches else []
    buckets = read_buckets(session, found, window) if found else {}
    by_launch = (
        _first([_grown(_series_of(one, found, name), buckets) for name in METRICS]) for one in launches
    )
    known = [count for count in by_launch if count is not None]
    return sum(known) if known else None


def _first(counts: list[float | None]) -> float | None:
    return next((count for count in counts if count is not None), None)


def _grown(series: list[SeriesRef], buckets: Mapping[int, Buckets]) -> float | None:
    parts = [buckets[ref.id] for ref in series if ref.id in buckets]
    sums = [float(part.sum[part.n > 0].sum()) for part in parts if (part.n > 0).any()]
    return sum(sums) if sums else None


def _series_of(launch: Launch, found: list[SeriesRef], metric: str) -> list[SeriesRef]:
    """Return the series of a metric that count a launch's own model once."""
    names = target_names(launch.served_model_name, launch.model, launch.draft_model, launch.version_source)
    series = {ref.id: ref for ref in found if ref.launch_id == launch.id and ref.metric == metric}
    kept = of_target([(ref.id, ref.labels) for ref in series.values()], names).kept
    return leaders((series[key], series[key].labels) for key in kept)
