"""Distances to the claimed profile over time, window by window, and how much of them is noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from sqlalchemy.orm import Session

from specscope_collectors.states.distances import quantiles
from specscope_collectors.states.rules import Fault, is_enough
from specscope_server.acceptance.trend import trend_of_window
from specscope_server.drift.facts import STATISTICS, Facts, facts_of
from specscope_server.drift.launches import marker
from specscope_server.drift.numbers import known
from specscope_server.drift.reading import MOST_ENTRIES, SERVING_PHASES, Entry, newest_entries
from specscope_server.drift.schemas import CellState, DriftPoint, DriftTrend, NoiseFloor
from specscope_server.drift.service import WHOLE_RANGE, Question, Scene, scene_of, used
from specscope_server.drift.windows import Place, Plan, plan_windows
from specscope_server.kit.timeparse import nice_step_ms, to_iso, window_of
from specscope_server.kit.web.state import AppState

MOST_WINDOWS = 36
"""Of each launch, slot and phase; more are thinned out evenly in time."""
STRETCHES = 36
"""A range with more profiles than are looked at is looked at in so many places."""
ENTRIES_OF_A_STRETCH = 160
FLOOR_SHARE = 0.95
FLOOR_PAIRS = 5
"""Pairs of neighbouring windows from which on noise is told."""
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
THINNED = "Not every window is shown: the range holds more than are read for one page. Shorten it to see all."
NOTE = (
    "These distances follow the text that is served as much as a wrong layer: they are shown, never alarmed "
    "on. Below the noise floor (the 95 % point between neighbouring windows) nothing can be seen."
)


def trend(session: Session, state: AppState, question: Question) -> DriftTrend:
    """Return the trend. Raises as `scene_of`."""
    scene = scene_of(session, question)
    plans, is_thinned = plans_of(session, question, scene)
    facts = {place: facts_of(session, each, scene.yard) for place, each in plans.items()}
    lengths = _AcceptLengths(session, state, question)
    points = [
        point_of(each, scene, lengths.over(each.plan.from_ms, each.plan.to_ms))
        for place in sorted(facts, key=_order)
        for each in facts[place]
    ]
    return DriftTrend.model_validate(
        {
            "server": scene.server.name,
            "from": to_iso(question.span.from_ms),
            "to": to_iso(question.span.to_ms),
            "is_demo": scene.is_demo,
            "reference": used(scene.yard.training or scene.yard.boundaries),
            "points": points,
            "floors": floors_of(facts),
            "launches": [
                marker(launch) for launch in scene.launches if launch.first_seen_ms >= question.span.from_ms
            ],
            "is_thinned": is_thinned,
            "note": f"{NOTE} {THINNED}" if is_thinned else NOTE,
        }
    )


def _order(place: Place) -> tuple[int, int, int]:
    launch, phase, slot = place
    return slot, SERVING_PHASES.index(phase), launch or 0


def plans_of(session: Session, question: Question, scene: Scene) -> tuple[dict[Place, list[Plan]], bool]:
    """Return windows of all launches in the range, or of the one asked for; and if some are left out."""
    span = question.span
    is_one = question.launch not in WHOLE_RANGE and scene.launch is not None
    ids = [scene.launch.id] if is_one and scene.launch else None
    entries = newest_entries(session, scene.server.id, span.from_ms, span.to_ms, ids)
    if len(entries) < MOST_ENTRIES:
        plans = plan_windows(entries, len(entries))
        is_thinned = any(len(each) > MOST_WINDOWS for each in plans.values())
        return {place: thinned(each) for place, each in plans.items()}, is_thinned
    return _sampled(session, scene.server.id, ids, span.from_ms, span.to_ms), True


def thinned(plans: Sequence[Plan]) -> list[Plan]:
    """Return windows spread evenly over time, the first and the newest among them."""
    if len(plans) <= MOST_WINDOWS:
        return list(plans)
    places = np.unique(np.linspace(0, len(plans) - 1, MOST_WINDOWS).round().astype(int))
    return [plans[place] for place in places.tolist()]


def _sampled(
    session: Session, server_id: int, launch_ids: list[int] | None, from_ms: int, to_ms: int
) -> dict[Place, list[Plan]]:
    """Return the newest window of each place in each of many stretches of the range."""
    found: dict[Place, list[Plan]] = {}
    edges = np.linspace(from_ms, to_ms, STRETCHES + 1).astype(int).tolist()
    for begin, end in pairwise(edges):
        entries: list[Entry] = newest_entries(
            session, server_id, begin, end, launch_ids, ENTRIES_OF_A_STRETCH
        )
        for place, plans in plan_windows(entries, 1).items():
            found.setdefault(place, []).extend(plans)
    return found


def point_of(facts: Facts, scene: Scene, accept_length: float | None) -> DriftPoint:
    """Return a window as a point of the trend."""
    apart, bank, plan = facts.apart, scene.yard.bank, facts.plan
    q05, q25, q50, q75, q95 = (known(value) for value in quantiles(facts.norms, SHARES))
    place = bank.places[facts.judged.place] if bank and facts.judged.place is not None else None
    return DriftPoint.model_validate(
        {
            "time": to_iso(plan.to_ms),
            "from": to_iso(plan.from_ms),
            "launch_id": plan.launch_id,
            "slot": plan.slot,
            "phase": plan.phase,
            "rows": facts.rows,
            "requests": facts.requests,
            "state": state_of(facts),
            "fault": facts.judged.fault,
            "nearest": place.boundary if place else None,
            **{name: known(getattr(apart, name)) for name in STATISTICS},
            "vcos": facts.judged.vcos.distance(facts.claimed),
            "claimed_excess": claimed_excess(facts),
            "q05": q05, "q25": q25, "q50": q50, "q75": q75, "q95": q95,
            "accept_length": accept_length,
        }
    )  # fmt: skip


def claimed_excess(facts: Facts) -> float | None:
    """Return how much farther the claimed place is than the nearest; None: not known, or not enough."""
    ranking = facts.judged.vcos
    claimed, best = ranking.distance(facts.claimed), ranking.distance(ranking.best)
    if claimed is None or best is None or facts.judged.missing:
        return None
    return claimed - best


def state_of(facts: Facts) -> CellState:
    """Return what one window says by itself."""
    if not facts.is_comparable:
        return CellState.NOT_COMPARABLE
    if not is_enough(facts.norms.rows, facts.requests):
        return CellState.NOT_ENOUGH
    if facts.judged.fault != Fault.NONE:
        return CellState.SUSPECTED
    return CellState.NOT_ENOUGH if facts.judged.missing else CellState.SAME


def floors_of(facts: Mapping[Place, Sequence[Facts]]) -> list[NoiseFloor]:
    """Return how far neighbouring windows of a launch are apart, for each slot, phase and statistic."""
    steps: dict[tuple[int, str], list[Facts]] = {}
    for (_, phase, slot), each in facts.items():
        steps.setdefault((slot, phase), []).extend(one for one in each if one.step is not None)
    return [
        _floor(slot, phase, name, steps[slot, phase])
        for slot, phase in sorted(steps, key=lambda key: (key[0], SERVING_PHASES.index(key[1])))
        for name in STATISTICS
    ]


def _floor(slot: int, phase: str, name: str, facts: Sequence[Facts]) -> NoiseFloor:
    values = [getattr(each.step, name) for each in facts]
    values = [value for value in values if not math.isnan(value)]
    value = float(np.quantile(values, FLOOR_SHARE)) if len(values) >= FLOOR_PAIRS else None
    return NoiseFloor(slot=slot, phase=phase, statistic=name, value=value, pairs=len(values))


class _AcceptLengths:
    """τ over windows, from the trend of acceptance, weighted by verify calls where they are known."""

    def __init__(self, session: Session, state: AppState, question: Question) -> None:
        span = question.span
        step_ms = nice_step_ms(span.to_ms - span.from_ms, 300, span.min_step_ms)
        found = trend_of_window(
            session, question.server, question.launch, window_of(span.from_ms, span.to_ms, step_ms),
            state.scrape_interval_ms,
        )  # fmt: skip
        self._step_ms = step_ms
        self._begin_ms = window_of(span.from_ms, span.to_ms, step_ms).from_ms
        length = [np.nan if point.accept_length is None else point.accept_length for point in found.points]
        self._length = np.array(length)
        self._calls = np.array([point.verify_calls or 1.0 for point in found.points])

    def over(self, from_ms: int, to_ms: int) -> float | None:
        """Return τ over the buckets that a window touches; None: it is not known in any."""
        first = max((from_ms - self._begin_ms) // self._step_ms, 0)
        last = max((to_ms - 1 - self._begin_ms) // self._step_ms, first) + 1
        length, calls = self._length[first:last], self._calls[first:last]
        is_known = ~np.isnan(length)
        if not is_known.any():
            return None
        return float((length[is_known] * calls[is_known]).sum() / calls[is_known].sum())
