"""What can be alerted on about drift. Every value is the page's own, as of each point in time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from specscope_collectors.states.rules import Fault
from specscope_server.drift.budget import false_alarms
from specscope_server.drift.cells import Judgement
from specscope_server.drift.choosing import Asked, choose
from specscope_server.drift.invariants import EMBEDDING, NOT_FINITE
from specscope_server.drift.reading import Entry, newest_entries
from specscope_server.drift.schemas import CellState
from specscope_server.drift.service import Scene, judgements_of
from specscope_server.drift.slots import slot_verdict
from specscope_server.drift.unchanged import state_of
from specscope_server.drift.words import cell_words
from specscope_server.kit.signal import Read, Signal, SignalQuery, SignalSeries, Target, Why, each_server
from specscope_server.models import Launch, Server
from specscope_server.store.lasting import lasting

PAGE = "/drift"
MOST_ENTRIES = 20_000
SLOT, PHASE = "slot", "phase"
VALUES = {CellState.SAME: 0.0, CellState.SUSPECTED: 1.0, CellState.WRONG: 2.0}
Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known at one point in time."""

    scene: Scene
    cells: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One value; NaN where ``why`` says that there is none."""

    value: float
    why: Why
    rows: float = np.nan
    requests: float = np.nan
    words: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def moments(session: Session, query: SignalQuery, server: Target) -> list[Moment | None]:
    """Return what was known at each time of a query; None: no profile was in its window."""
    return query.shared(("drift", server.id), lambda: _moments(session, query, server))


def _moments(session: Session, query: SignalQuery, server: Target) -> list[Moment | None]:
    launch_ids = [int(query.launch)] if query.launch and query.launch.isdigit() else None
    end_ms = int(query.times_ms[-1]) if len(query.times_ms) else query.to_ms
    entries = newest_entries(session, server.id, query.begin_ms, end_ms, launch_ids, MOST_ENTRIES)[::-1]
    times = [entry.time_ms for entry in entries]
    row = session.get(Server, server.id)
    found: list[Moment | None] = []
    before: tuple[int, int] | None = None
    for time_ms in query.times_ms.tolist():
        last = bisect_right(times, time_ms)
        first = bisect_right(times, time_ms - query.window_ms)
        if (first, last) != before:
            own = entries[first:last][::-1]
            newest = _moment(session, row, own) if own and row is not None else None
        found.append(newest)
        before = (first, last)
    return found


def _moment(session: Session, server: Server, entries: Sequence[Entry]) -> Moment:
    own = tuple(entry for entry in entries if entry.launch_id == entries[0].launch_id)
    number = own[0].launch_id
    launch = session.get(Launch, number) if number is not None else None
    yard = choose(session, Asked(), own[0].hidden_size, launch.model if launch else None)
    scene = Scene(server, launch, (launch,) if launch else (), own, yard)
    return Moment(scene, tuple(judgements_of(session, scene)))


Make = Callable[[Moment], dict[Labels, Point]]


def _reader(names: Labels, make: Make) -> Read:
    def read(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        key = ("drift", make, names, server, query.launch, query.window_ms)
        state = state_of(session, query, server)
        return lasting(session, key, state, lambda: anew(session, query, server))

    def anew(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        points = [make(moment) if moment else {} for moment in moments(session, query, server)]
        places = sorted({place for each in points for place in each})
        return [_series(server, names, place, [each.get(place) for each in points]) for place in places]

    return each_server(read)


def _series(server: Target, names: Labels, place: Labels, found: Sequence[Point | None]) -> SignalSeries:
    points = [point or Point(np.nan, Why.NO_DATA) for point in found]
    words = next((point.words for point in reversed(points) if point.words), "")
    return SignalSeries(
        labels={"server": server.name, **dict(zip(names, place, strict=True))},
        value=np.array([point.value for point in points]),
        why=np.array([point.why for point in points], dtype=np.uint8),
        n=np.array([point.rows for point in points]),
        requests=np.array([point.requests for point in points]),
        note=words, evidence={**points[-1].evidence, "words": words},
    )  # fmt: skip


def _verdicts(moment: Moment) -> dict[Labels, Point]:
    found: dict[Labels, Point] = {}
    slots = sorted({cell.slot for cell in moment.cells})
    cost = false_alarms([cell.facts for cell in moment.cells], len(slots))
    budget = {name: getattr(cost, name) for name in ("expected_per_month", "budget_per_month")}
    for slot in slots:
        cells = [cell for cell in moment.cells if cell.slot == slot]
        verdict = slot_verdict(cells, moment.scene.yard)
        windows = [cell.newest for cell in cells if cell.newest]
        why = Why.OK if verdict.state in VALUES else _why(verdict.state)
        found[(str(slot),)] = Point(
            VALUES.get(verdict.state, np.nan), why, sum(each.rows for each in windows),
            sum(each.requests for each in windows), verdict.headline, {"false_alarms": budget},
        )  # fmt: skip
    return found


def _why(state: CellState) -> Why:
    return Why.FEW if state == CellState.NOT_ENOUGH else Why.NO_DATA


def _gross(value: Callable[[Judgement], float | None]) -> Make:
    def make(moment: Moment) -> dict[Labels, Point]:
        found: dict[Labels, Point] = {}
        for cell in moment.cells:
            if cell.newest is None:
                continue
            known = value(cell)
            why = Why.OK if known is not None else _why(CellState.NOT_ENOUGH)
            found[str(cell.slot), cell.phase] = Point(
                np.nan if known is None else known, why, cell.newest.rows, cell.newest.requests,
                cell_words(cell, moment.scene.yard),
            )  # fmt: skip
        return found

    return make


def _norm(cell: Judgement) -> float | None:
    return cell.newest.judged.gross_norm if cell.newest else None


def _direction(cell: Judgement) -> float | None:
    return cell.newest.judged.gross_direction if cell.newest else None


def _invariant(kind: str, *, is_count: bool) -> Make:
    def make(moment: Moment) -> dict[Labels, Point]:
        found: dict[Labels, Point] = {}
        for cell in moment.cells:
            each = next((one for one in cell.invariants if one.kind == kind), None)
            if each is None:
                continue
            known = each.count if is_count else (None if each.passed is None else float(not each.passed))
            why = Why.OK if known is not None else Why.NO_DATA
            value = np.nan if known is None else float(known)
            found[str(cell.slot), cell.phase] = Point(value, why, each.looked_at or 0, words=each.message)
        return found

    return make


def _claims(moment: Moment) -> dict[Labels, Point]:
    """Return for each slot whether the engine says it captures another boundary than was trained on."""
    found: dict[Labels, Point] = {}
    for cell in moment.cells:
        trained, captured = moment.scene.yard.trained(cell.slot), cell.captured
        if moment.scene.yard.training is None or trained is None or captured is None:
            continue
        words = f"the engine captures boundary {captured}, trained on {trained}"
        rows = cell.newest.rows if cell.newest else 0
        found[(str(cell.slot),)] = Point(float(trained != captured), Why.OK, rows, words=words)
    return found


def _faults(moment: Moment) -> dict[Labels, Point]:
    """Return how many slots are wrong."""
    wrong = [point for point in _verdicts(moment).values() if point.why == Why.OK]
    faults = [cell for cell in moment.cells if cell.state == CellState.WRONG and cell.fault != Fault.NONE]
    words = "; ".join(
        dict.fromkeys(f"slot {cell.slot} {cell_words(cell, moment.scene.yard)}" for cell in faults)
    )
    if not wrong:
        return {(): Point(np.nan, Why.FEW)}
    value = float(sum(point.value == VALUES[CellState.WRONG] for point in wrong))
    return {(): Point(value, Why.OK, sum(point.rows for point in wrong), words=words)}


SIGNALS: tuple[Signal, ...] = (
    Signal("drift.verdict", "level", "0 as trained, 1 suspected (one window), 2 wrong (two of three windows, "
           "two phases, or an invariant).", _reader((SLOT,), _verdicts), (SLOT,), "rows", page=PAGE),
    Signal("drift.wrong_slots", "slots", "Slots that are wrong.", _reader((), _faults), n_unit="rows",
           page=PAGE),
    Signal("drift.norm", "nats", "W₁ of ln‖h‖ between the newest window and training.",
           _reader((SLOT, PHASE), _gross(_norm)), (SLOT, PHASE), "rows", page=PAGE),
    Signal("drift.direction", "1", "1 − cos of mean directions of the newest window and training.",
           _reader((SLOT, PHASE), _gross(_direction)), (SLOT, PHASE), "rows", page=PAGE),
    Signal("drift.nonfinite_rows", "rows", "Rows of the last windows that are not finite.",
           _reader((SLOT, PHASE), _invariant(NOT_FINITE, is_count=True)), (SLOT, PHASE), "rows", page=PAGE),
    Signal("drift.embedding", "flag", "1 where a slot is the embedding and was not trained on it.",
           _reader((SLOT, PHASE), _invariant(EMBEDDING, is_count=False)), (SLOT, PHASE), "pairs", page=PAGE),
    Signal("drift.claims", "flag",
           "1 where the engine says it captures another boundary than was trained on.",
           _reader((SLOT,), _claims), (SLOT,), "rows", page=PAGE),
)  # fmt: skip
