"""Every metric of the catalogue as a signal, and metrics that an upgrade has lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.catalogue import CATALOGUE
from specscope_server.kit.signal import Read, Signal, SignalQuery, SignalSeries, Target, Why, each_server
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch, Series
from specscope_server.series.query import STATS, Line, run
from specscope_server.store.lookup import launch_by_id, launches_between
from specscope_server.store.series_finder import of_servers
from specscope_server.store.series_reader import SeriesRef

PREFIX = "metric:"
RAW_MS = 7_200_000
"""Windows up to here are read sample by sample, so that they end exactly now; longer ones by the minute."""
MINUTE_MS = 60_000
SETTLED_MS = 900_000
"""A launch that decoded for so long has shown every metric that it has."""
FAMILIES = ("spec.", "tokens.", "throughput.", "kv.", "latency.", "requests.finished", "requests.running")
"""Metrics that traffic makes appear in any launch."""
RARE = ("tokens.cached", "tokens.prefill_cached", "spec.cap_length", "spec.block_accept_length")


def metric_signals() -> list[Signal]:
    """Return a signal for each metric and stat: ``metric:NAME`` (its first stat) and ``metric:NAME:STAT``."""
    found = []
    for metric in CATALOGUE.values():
        stats = STATS[metric.kind]
        for index, stat in enumerate(stats):
            unit = f"{metric.unit}/s" if stat == "rate" else metric.unit
            names = [f"{PREFIX}{metric.name}:{stat}", *([f"{PREFIX}{metric.name}"] if index == 0 else [])]
            found += [
                Signal(
                    name, unit, metric.meaning, _reader(metric.name, stat), metric.labels,
                    "readings",
                )
                for name in names
            ]  # fmt: skip
    return found


def _reader(metric: str, stat: str) -> Read:
    def read(session: Session, query: SignalQuery) -> list[SignalSeries]:
        names = {server.id: server.name for server in query.servers}
        refs = _found(session, query, metric)
        if len(query.times_ms) == 1:
            lines = run(session, refs, _window(query, query.to_ms), "ranks", stat)
            return _series({0: lines}, names, 1)
        if query.step_ms == query.window_ms:
            return _tumbling(session, query, refs, stat, names)
        rows = {
            index: run(session, refs, _window(query, int(end_ms)), "ranks", stat)
            for index, end_ms in enumerate(query.times_ms)
        }
        return _series(rows, names, len(query.times_ms))

    return read


def _found(session: Session, query: SignalQuery, metric: str) -> list[SeriesRef]:
    """Return the series of a metric, of launches that can have samples in the range."""
    launches = query.shared(("launches",), lambda: _launches(session, query))
    found = of_servers(session, [metric], [server.id for server in query.servers])
    return [ref for ref in found if ref.launch_id is None or ref.launch_id in launches]


def _launches(session: Session, query: SignalQuery) -> frozenset[int]:
    if query.launch is not None:
        chosen = launch_by_id(session, query.launch)
        return frozenset() if chosen is None else frozenset((chosen.id,))
    slack_ms = query.state.stale_after_ms
    statement = select(Launch.id).where(
        Launch.first_seen_ms < query.to_ms, Launch.last_seen_ms >= query.begin_ms - slack_ms
    )
    return frozenset(session.scalars(statement))


def _window(query: SignalQuery, end_ms: int) -> Window:
    """Return one bucket that is the window.

    A bucket a millisecond longer than the window is of no roll-up's length, so samples are read.
    """
    if query.window_ms <= RAW_MS:
        return Window(end_ms - query.window_ms, end_ms, query.window_ms + 1)
    end_ms -= end_ms % MINUTE_MS
    return Window(end_ms - query.window_ms, end_ms, query.window_ms)


def _tumbling(
    session: Session, query: SignalQuery, refs: Sequence[SeriesRef], stat: str, names: Mapping[int, str]
) -> list[SignalSeries]:
    size = len(query.times_ms)
    start_ms = query.begin_ms
    if query.window_ms % MINUTE_MS == 0:
        start_ms -= start_ms % MINUTE_MS  # roll-ups by the minute lie wholly inside the buckets then
    window = Window(start_ms, start_ms + size * query.window_ms, query.window_ms)
    found: dict[tuple[object, ...], SignalSeries] = {}
    for line in sorted(run(session, refs, window, "ranks", stat), key=lambda line: line.launch_id or 0):
        key, series = _key(line), _one(line, names, line.values, line.n)
        found[key] = _over(found[key], series) if key in found else series
    return list(found.values())


def _key(line: Line) -> tuple[object, ...]:
    """Return what an alert belongs to: a restart does not end it, so the launch is no part of it."""
    return line.server_id, tuple(sorted(line.labels.items()))


def _over(older: SignalSeries, newer: SignalSeries) -> SignalSeries:
    """Return the newer launch's points, and the older one's where it has none."""
    seen = ~np.isnan(newer.value)
    pick = {
        name: np.where(seen, getattr(newer, name), getattr(older, name)) for name in ("value", "why", "n")
    }
    return SignalSeries(newer.labels, pick["value"], pick["why"], pick["n"])


def _one(
    line: Line, names: Mapping[int, str], value: np.ndarray[tuple[int], np.dtype[np.float64]],
    n: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> SignalSeries:  # fmt: skip
    why = np.where(np.isnan(value), Why.NO_DATA, Why.OK).astype(np.uint8)
    return SignalSeries({"server": names[line.server_id], **line.labels}, value, why, n.astype(np.float64))


def _series(rows: Mapping[int, Sequence[Line]], names: Mapping[int, str], size: int) -> list[SignalSeries]:
    """Return the lines of each point as series over all points."""
    found: dict[tuple[object, ...], tuple[Line, dict[int, Line]]] = {}
    for index, lines in rows.items():
        for line in sorted(lines, key=lambda line: line.launch_id or 0):
            found.setdefault(_key(line), (line, {}))[1][index] = line
    result = []
    for first, points in found.values():
        value, n = np.full(size, np.nan), np.zeros(size, dtype=np.int64)
        for index, line in points.items():
            value[index], n[index] = line.values[0], line.n[0]
        result.append(_one(first, names, value, n))
    return result


def _vanished(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    """At each point: metrics of the launch before that the newest one, of another version, never showed."""
    ends = query.times_ms.tolist()
    launches = launches_between(session, server.id, 0, query.to_ms)
    counts, named = [], []
    for end_ms in ends:
        begun = [launch for launch in launches if launch.first_seen_ms <= end_ms]
        lost = _lost(session, query, begun, end_ms)
        counts.append(np.nan if lost is None else float(len(lost)))
        named.append(lost or [])
    if np.isnan(counts).all():
        return []
    value = np.array(counts)
    why = np.where(np.isnan(value), Why.NO_DATA, Why.OK).astype(np.uint8)
    return [
        SignalSeries(
            {"server": server.name}, value, why, np.ones(len(value)), note=", ".join(named[-1][:8]),
            evidence={"metrics": named[-1][:50]},
        )
    ]  # fmt: skip


def _lost(session: Session, query: SignalQuery, begun: Sequence[Launch], end_ms: int) -> list[str] | None:
    """Return what is missing; None = nothing to compare (no upgrade, or too early to say)."""
    if len(begun) < 2 or end_ms - begun[-1].first_seen_ms < SETTLED_MS:
        return None
    newest, earlier = begun[-1], begun[-2]
    if newest.engine != earlier.engine or newest.engine_version == earlier.engine_version:
        return None
    now, then = (_metrics(session, query, launch) for launch in (newest, earlier))
    if not any(metric.startswith(("tokens.", "requests.finished")) for metric in now):
        return None  # nothing was decoded yet
    speculates = newest.algorithm is not None
    return sorted(
        metric
        for metric in then - now
        if metric.startswith(FAMILIES)
        and metric not in RARE
        and (speculates or not metric.startswith("spec."))
    )


def _metrics(session: Session, query: SignalQuery, launch: Launch) -> frozenset[str]:
    def read() -> frozenset[str]:
        statement = select(Series.metric).distinct().where(Series.launch_id == launch.id)
        return frozenset(session.scalars(statement))

    return query.shared(("metrics", launch.id), read)


SIGNALS: tuple[Signal, ...] = (
    Signal("series.vanished", "metrics", "Metrics of the launch before that are gone after an upgrade.",
           each_server(_vanished), (), "comparisons", page="/sources"),
    *metric_signals(),
)  # fmt: skip
"""`kit.signal.Signal`s of this domain."""
