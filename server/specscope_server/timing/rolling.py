"""Where the time went in a row of windows that may overlap: read once, cut window by window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from specscope_server.acceptance.context import Context
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.requests import request_sums
from specscope_server.acceptance.rolling import Cut, cut_launch, cuts
from specscope_server.kit.signal import SignalQuery, Target
from specscope_server.store.lookup import choose_launches
from specscope_server.timing.baseline import PlainSteps, find_baseline
from specscope_server.timing.facts import Facts, facts_of
from specscope_server.timing.measure import LaunchTracks, Timed, measure
from specscope_server.timing.series import Counted, Scheduler
from specscope_server.timing.tracks import Cell, Track

SLOT_MS = 6 * 3_600_000
"""Baselines are measured once in each slot of this length, not at every evaluation."""
BEFORE_MS = 24 * 3_600_000
MAX_KEPT = 512

Made = TypeVar("Made")
_kept: WeakKeyDictionary[Engine, dict[object, Any]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Moment:
    """One point: what its window holds."""

    end_ms: int
    timed: Timed
    facts: Facts | None


def moments(session: Session, query: SignalQuery, server: Target) -> list[Moment]:
    """Return what each point's window holds; shared by all signals of one evaluation."""
    return query.shared(("timing", server.id), lambda: _moments(session, query, server))


def _moments(session: Session, query: SignalQuery, server: Target) -> list[Moment]:
    launches = choose_launches(session, server.id, query.launch, query.begin_ms, query.to_ms)
    timed = measure(
        session, query.state, server.id, launches, query.begin_ms, query.to_ms, query.to_ms
    )  # fmt: skip
    ids = [launch.id for launch in launches]
    with_requests = timed.context.measured.requests is not None
    found = []
    for cut in cuts(query, timed.window):
        requests = request_sums(session, server.id, ids, cut.window) if with_requests else None
        parts = [part for one in timed.launches if (part := _cut_tracks(one, timed, cut)) is not None]
        measured = Measured(cut.window, [one.data for one in parts if one.data is not None], requests)
        context = Context(measured, cut.window.to_ms, query.state.stale_after_ms)
        inside = Timed(cut.window, parts, context)
        found.append(Moment(cut.window.to_ms, inside, facts_of(inside)))
    return found


def _cut_tracks(one: LaunchTracks, timed: Timed, cut: Cut) -> LaunchTracks | None:
    data = None if one.data is None else cut_launch(one.data, timed.window, cut)
    tracks = {level: cut_track(track, cut) for level, track in one.tracks.items()}
    if data is None and not any(track.is_used for track in tracks.values()):
        return None
    return replace(one, data=data, tracks=tracks)


def cut_track(track: Track, cut: Cut) -> Track:
    """Return a track's part: whatever in it is an array over fine buckets is cut."""
    part = slice(cut.first, cut.last)
    return replace(track, **{one.name: _cut(getattr(track, one.name), part) for one in fields(track)})


def _cut(value: Any, part: slice) -> Any:
    if isinstance(value, np.ndarray):
        return value[part]
    if isinstance(value, dict):
        return {key: _cut(one, part) for key, one in value.items()}
    if isinstance(value, Cell):
        return Cell(*(_cut(getattr(value, one.name), part) for one in fields(value)))
    return value


def cut_scheduler(one: Scheduler, cut: Cut) -> Scheduler:
    """Return a scheduler's counters of a part of the window."""
    part = slice(cut.first, cut.last)
    counters = {
        metric: [Counted(each.labels, each.value[part], each.span_seconds[part]) for each in found]
        for metric, found in one.counters.items()
    }
    return Scheduler(one.dp_rank, one.place, cut.last - cut.first, counters, one.newest_ms)


def plain_steps(session: Session, query: SignalQuery, moment: Moment) -> PlainSteps | None:
    """Return the plain decode steps to compare a moment with, looked for once in each slot of time."""
    if moment.facts is None or moment.facts.track.is_plain:
        return None
    newest = moment.timed.launches[-1].launch.id
    key = ("plain", newest, moment.timed.level, moment.end_ms // SLOT_MS)
    return _keep(
        session, key, lambda: find_baseline(session, query.state, moment.timed, moment.end_ms)
    )  # fmt: skip


def before(session: Session, query: SignalQuery, server: Target, moment: Moment) -> Timed | None:
    """Return the 24 h before a moment's window; they end with the last full slot of time.

    While ``query.held_ms`` says so, the 24 h before the window that ended there.
    """
    start_ms = moment.timed.window.from_ms
    if query.held_ms is not None:
        start_ms = min(start_ms, query.held_ms - query.window_ms)
    end_ms = start_ms - start_ms % SLOT_MS
    key = ("before", server.id, query.launch, end_ms)

    def read() -> Timed | None:
        launches = choose_launches(session, server.id, query.launch, end_ms - BEFORE_MS, end_ms)
        if not launches:
            return None
        return measure(
            session, query.state, server.id, launches, end_ms - BEFORE_MS, end_ms, end_ms
        )  # fmt: skip

    return _keep(session, key, read)


def _keep(session: Session, key: object, make: Callable[[], Made]) -> Made:
    engine = session.get_bind()
    assert isinstance(engine, Engine)
    known = _kept.setdefault(engine, {})
    if key not in known:
        if len(known) >= MAX_KEPT:
            known.clear()
        known[key] = make()
    return known[key]  # type: ignore[no-any-return]
