"""How many of the cycles that the engine counted the reported requests account for."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.kit.ranks import leaders
from specscope_server.kit.targets import of_target, target_names
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch, Request
from specscope_server.requests.filters import Scope
from specscope_server.store.series_reader import SeriesRef, find_series, read_buckets

METRIC = "spec.verify_calls"


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
    found = (
        find_series(session, metrics=(METRIC,), launch_ids=[one.id for one in launches]) if launches else []
    )
    chosen = [ref for launch in launches for ref in _series_of(launch, found)]
    buckets = read_buckets(session, chosen, window) if chosen else {}
    sums = [float(part.sum[part.n > 0].sum()) for part in buckets.values() if (part.n > 0).any()]
    return sum(sums) if sums else None


def _series_of(launch: Launch, found: list[SeriesRef]) -> list[SeriesRef]:
    """Return the series that count a launch's own model once."""
    names = target_names(launch.served_model_name, launch.model, launch.draft_model, launch.version_source)
    series = {ref.id: ref for ref in found if ref.launch_id == launch.id}
    kept = of_target([(ref.id, ref.labels) for ref in series.values()], names).kept
    return leaders((series[key], series[key].labels) for key in kept)
