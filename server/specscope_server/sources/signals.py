"""What can be alerted on about collection itself: sources that fail or fall silent, and the probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.signal import Floats, Signal, SignalQuery, SignalSeries, Target, Why, each_server
from specscope_server.kit.timerange import Window
from specscope_server.models import SourceStatus
from specscope_server.sources.probes import rank_words
from specscope_server.store.latest import newest_times
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

PAGE = "/sources"
MAX_FINE = 20_000
FEW_SERIES = 200
UNWELL = ("failed", "over_budget")
"""States of a part of the probe that an operator must hear of."""


class Rows:
    """Samples of some metrics of one server in fine buckets, and how points cut them."""

    def __init__(self, session: Session, query: SignalQuery, server: Target, metrics: Sequence[str]) -> None:
        span_ms = query.to_ms - query.begin_ms
        step_ms = max(query.state.scrape_interval_ms // 2, -(-span_ms // MAX_FINE), 1_000)
        self.window = Window(query.begin_ms - query.begin_ms % step_ms, query.to_ms, step_ms)
        self.refs = _lately(session, find_series(session, metrics=metrics, server_id=server.id), self.window)
        self.read = read_buckets(session, self.refs, self.window) if self.refs else {}
        self.refs = [ref for ref in self.refs if ref.id in self.read]
        ends = query.times_ms - self.window.from_ms
        self.last = np.minimum(-(-ends // step_ms), self.window.buckets)
        self.first = np.maximum((ends - query.window_ms) // step_ms, 0)

    def groups(self, label: str | None) -> dict[str, list[SeriesRef]]:
        """Return the value of a label (of None: the rank in words) → its series."""
        found: dict[str, list[SeriesRef]] = {}
        for ref in self.refs:
            key = rank_words(ref.labels) if label is None else ref.labels.get(label, "?")
            found.setdefault(key, []).append(ref)
        return found

    def added(self, refs: Sequence[SeriesRef], what: str = "sum") -> Floats:
        """Return the sum over the windows of a column of these series, shape (points,)."""
        column = np.sum([getattr(self.read[ref.id], what) for ref in refs], axis=0, dtype=np.float64)
        total = np.concatenate(([0.0], np.cumsum(column)))
        return np.asarray(total[self.last] - total[self.first])


def _lately(session: Session, refs: list[SeriesRef], window: Window) -> list[SeriesRef]:
    """Return the series that can have samples in a window: of many launches, most are over for long."""
    if len(refs) <= FEW_SERIES:
        return refs
    newest_ms = newest_times(session, [ref.id for ref in refs])
    return [ref for ref in refs if newest_ms.get(ref.id, 0) >= window.from_ms]


def _rows(session: Session, query: SignalQuery, server: Target, *metrics: str) -> Rows:
    return query.shared((metrics, server.id), lambda: Rows(session, query, server, metrics))


def _counted(n: Floats) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.where(n > 0, Why.OK, Why.NO_DATA).astype(np.uint8)


def _up(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    rows = _rows(session, query, server, "scrape.up")
    found = []
    for source, refs in rows.groups("source").items():
        n, good = rows.added(refs, "n"), rows.added(refs)
        value = np.where(n > 0, good / np.maximum(n, 1), np.nan)
        found.append(SignalSeries({"server": server.name, "source": source}, value, _counted(n), n))
    return found


def _age(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    """Of a server that was asked before. One that is no longer listed is not asked, and that is no fault."""
    rows = _rows(session, query, server, "scrape.up")
    statuses = list(session.scalars(select(SourceStatus).where(SourceStatus.server_id == server.id)))
    asked = [one for one in statuses if one.state not in ("gone", "not_offered")]
    newest = max(statuses, key=lambda one: (one.time_ms, one.state == "gone"), default=None)
    if not asked or newest is None or newest.state == "gone":
        return []
    good = np.zeros(rows.window.buckets, dtype=bool)
    for ref in rows.refs:
        good |= rows.read[ref.id].max > 0
    if not rows.refs and not any(one.last_good_ms for one in asked):
        return []
    ages = _ages(rows, good, query, max((one.last_good_ms or 0 for one in asked), default=0))
    worst = max(asked, key=lambda one: (one.state not in ("ok", "partial"), one.time_ms))
    evidence = {"source": worst.source, "state": worst.state, "detail": worst.detail[:200]}
    why = np.where(np.isnan(ages), Why.NO_DATA, Why.OK).astype(np.uint8)
    n = rows.added(rows.refs, "n") if rows.refs else np.zeros(len(ages))
    return [SignalSeries({"server": server.name}, ages, why, n, note=worst.remedy[:300], evidence=evidence)]


def _ages(rows: Rows, good: np.ndarray[tuple[int], np.dtype[np.bool_]], query: SignalQuery,
          last_good_ms: int) -> Floats:  # fmt: skip
    """Return seconds since anything was read; where that lies before the window, at least its length."""
    places = np.where(good, np.arange(len(good)), -1)
    newest = np.maximum.accumulate(places)[rows.last - 1] if len(good) else np.full(len(rows.last), -1)
    ends_ms = rows.window.from_ms + (newest + 1) * rows.window.step_ms
    inside = np.maximum(query.times_ms - ends_ms, 0) / 1_000
    before = (query.times_ms - last_good_ms) / 1_000
    unknown = np.where(before >= 0, before, query.window_ms / 1_000)
    began = last_good_ms > 0
    return np.asarray(np.where(newest >= rows.first, inside, unknown if began else np.nan), dtype=np.float64)


def _refused(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    rows = _rows(session, query, server, "scrape.refused")
    found = []
    for source, refs in rows.groups("source").items():
        n = rows.added(refs, "n")
        value = np.where(n > 0, rows.added(refs) / np.maximum(n, 1), np.nan)
        found.append(SignalSeries({"server": server.name, "source": source}, value, _counted(n), n))
    return found


def _overhead(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    rows = _rows(session, query, server, "probe.host_time", "probe.wall_time")
    found = []
    for rank, refs in rows.groups(None).items():
        wall = rows.added([ref for ref in refs if ref.metric == "probe.wall_time"])
        host = rows.added([ref for ref in refs if ref.labels.get("where") == "cycle"])
        value = np.where(wall > 0, host / np.where(wall > 0, wall, 1.0), np.nan)
        found.append(SignalSeries({"server": server.name, "rank": rank}, value, _counted(wall), wall))
    return found


def _unwell(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    """Count the parts of a rank's probe that are in a state that an operator must hear of, at each end."""
    rows = _rows(session, query, server, "probe.part")
    found = []
    for rank, refs in rows.groups(None).items():
        n = rows.added(refs, "n")
        unwell = [ref for ref in refs if ref.labels.get("state") in UNWELL]
        bad = [_at_end(rows, rows.read[ref.id]) for ref in unwell]
        value = np.sum(bad, axis=0) if bad else np.zeros(len(n))
        named = [_named(ref.labels) for ref, flags in zip(unwell, bad, strict=True) if flags[-1]]
        found.append(
            SignalSeries(
                {"server": server.name, "rank": rank}, np.where(n > 0, value, np.nan), _counted(n), n,
                note=", ".join(named), evidence={"parts": named},
            )
        )  # fmt: skip
    return found


def _at_end(rows: Rows, part: Buckets) -> Floats:
    """Return the newest flag inside each window, 0 where there is none."""
    seen = np.maximum.accumulate(np.where(part.n > 0, np.arange(len(part.n)), -1))[rows.last - 1]
    return np.where(seen >= rows.first, np.nan_to_num(part.last)[np.maximum(seen, 0)], 0.0)


def _named(labels: Mapping[str, str]) -> str:
    return f"{labels.get('part', '?')} {labels.get('state', '?')}".replace("_", " ")


SIGNALS: tuple[Signal, ...] = (
    Signal("sources.up", "1", "Share of the attempts to read a source that succeeded.", each_server(_up),
           ("source",), "attempts", page=PAGE),
    Signal("sources.age", "seconds", "Time since anything was read from the server.", each_server(_age),
           (), "attempts", page=PAGE),
    Signal("sources.refused", "values", "Values refused in an answer, on average.", each_server(_refused),
           ("source",), "answers", page=PAGE),
    Signal("sources.probe_overhead", "1", "Share of the scheduler's wall time that the probe itself takes.",
           each_server(_overhead), ("rank",), "seconds", page=PAGE),
    Signal("sources.probe_unwell", "parts", "Parts of the probe that failed or switched themselves off.",
           each_server(_unwell), ("rank",), "readings", page=PAGE),
)  # fmt: skip
"""`kit.signal.Signal`s of this domain."""
