"""What acceptance is in a row of windows that may overlap: read once, then judged window by window as the
summary judges one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.context import Context
from specscope_server.acceptance.gather import Growth, LaunchData, RankData, gather
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.requests import request_sums
from specscope_server.acceptance.statistics import Floats
from specscope_server.acceptance.windows import fine_window, most_buckets
from specscope_server.kit.signal import SignalQuery, Target
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.store.lookup import choose_launches


@dataclass(frozen=True, slots=True)
class Rolling:
    """One context a point of the query, as if the summary had been asked at the end of its window."""

    launches: list[Launch]
    contexts: list[Context]
    whole: Window


@dataclass(frozen=True, slots=True)
class Cut:
    """Which fine buckets of ``whole`` a window holds."""

    first: int
    last: int
    window: Window


def rolling(session: Session, query: SignalQuery, server: Target) -> Rolling:
    """Return the contexts of one server; shared by all signals of one evaluation."""
    return query.shared(("acceptance", server.id), lambda: _rolling(session, query, server))


def cuts(query: SignalQuery, whole: Window) -> list[Cut]:
    """Return the fine buckets of each point's window, as `fine_window` would choose them for it alone."""
    found = []
    for end_ms in query.times_ms.tolist():
        first = max((end_ms - query.window_ms - whole.from_ms) // whole.step_ms, 0)
        last = min(-(-(end_ms - whole.from_ms) // whole.step_ms), whole.buckets)
        found.append(Cut(first, last, Window(whole.from_ms + first * whole.step_ms, end_ms, whole.step_ms)))
    return found


def _rolling(session: Session, query: SignalQuery, server: Target) -> Rolling:
    launches = choose_launches(session, server.id, query.launch, query.begin_ms, query.to_ms)
    interval_ms = query.state.scrape_interval_ms
    whole = fine_window(query.begin_ms, query.to_ms, interval_ms, most_buckets(launches))
    data = gather(session, launches, whole)
    ids = [launch.id for launch in launches]
    with_requests = bool(ids) and request_sums(session, server.id, ids, whole) is not None
    contexts = []
    for cut in cuts(query, whole):
        requests = request_sums(session, server.id, ids, cut.window) if with_requests else None
        measured = Measured(cut.window, cut_all(data, whole, cut), requests)
        contexts.append(Context(measured, cut.window.to_ms, query.state.stale_after_ms))
    return Rolling(launches, contexts, whole)


def cut_all(data: Sequence[LaunchData], whole: Window, cut: Cut) -> list[LaunchData]:
    """Return the launches of a part of the window, without those that have nothing in it."""
    found = [cut_launch(one, whole, cut) for one in data]
    return [one for one in found if one is not None]


def cut_launch(data: LaunchData, whole: Window, cut: Cut) -> LaunchData | None:
    """Return what a launch has in a part of the window; None = nothing."""
    if cut.first == 0 and cut.last == whole.buckets:
        return data
    part = slice(cut.first, cut.last)
    counters = {
        metric: Growth(one.value[part], one.span_ms[part], one.scrapes[part])
        for metric, one in data.counters.items()
        if _is_seen(one.value[part])
    }
    ranks = {key: _cut_rank(rank, part) for key, rank in data.ranks.items()}
    ranks = {key: rank for key, rank in ranks.items() if rank.mean or rank.decoded is not None}
    if not counters and not any(rank.mean for rank in ranks.values()):
        return None
    found = LaunchData(data.launch, cut.last - cut.first, counters, ranks, {}, data.step_ms)
    found.newest_ms = _newest(data, found, cut)
    found.note, found.log_decision, found.disturbances = data.note, data.log_decision, data.disturbances
    found.prefill = [growth[part] for growth in data.prefill]
    return found


def _cut_rank(rank: RankData, part: slice) -> RankData:
    def cut(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
        return {metric: array[part] for metric, array in arrays.items() if _is_seen(array[part])}

    decoded = None if rank.decoded is None or not _is_seen(rank.decoded[part]) else rank.decoded[part]
    return RankData(rank.dp_rank, cut(rank.mean), cut(rank.low), cut(rank.high), cut(rank.last), decoded)


def _is_seen(array: Floats) -> bool:
    return not bool(np.isnan(array).all())


def _newest(data: LaunchData, part: LaunchData, cut: Cut) -> dict[str, int]:
    """Return when the newest sample of each metric was taken: exactly where it is the newest of all."""
    found: dict[str, int] = {}
    arrays = [(metric, one.value) for metric, one in part.counters.items()]
    arrays += [(metric, array) for rank in part.ranks.values() for metric, array in rank.mean.items()]
    for metric, array in arrays:
        last = int(np.flatnonzero(~np.isnan(array))[-1])
        end_ms = min(cut.window.from_ms + (last + 1) * cut.window.step_ms, cut.window.to_ms) - 1
        known = data.newest_ms.get(metric)
        exact = known if known is not None and end_ms - cut.window.step_ms < known <= end_ms else end_ms
        found[metric] = max(found.get(metric, 0), exact)
    return found
