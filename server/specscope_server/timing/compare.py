"""Two launches, or two windows, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import Ratio
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timeparse import parse_instant, to_iso, window_of
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.models import Launch
from specscope_server.store.lookup import (
    choose_launches,
    launch_by_id,
    launches_between,
    previous_launch,
    server_by_name,
)
from specscope_server.timing.facts import Facts, facts_of
from specscope_server.timing.measure import LEVELS, Timed, is_plain, measure
from specscope_server.timing.phases import TITLES, Phase
from specscope_server.timing.same_batch import same_batch
from specscope_server.timing.schemas import (
    ComparedPhase,
    Level,
    TimedLaunch,
    TimingComparison,
    TimingSide,
)
from specscope_server.timing.statistics import MIN_CYCLES, relative_change
from specscope_server.timing.words import timed_launch

CYCLE = "cycle"
MAX_BACK = 10
"""Launches that are passed over to find one of the same kind."""
BETWEEN = "/"
LOOK_BACK_MS = 24 * 3_600_000
METHOD = "block bootstrap over scrapes of each side, joined on the scale of logarithms"
NO_PAIR = "There is no launch before this one to compare it with"
NO_LEVEL = "The two sides have no level of evidence in common"


@dataclass(frozen=True, slots=True)
class Side:
    """What was measured of one side."""

    words: str
    launch: Launch | None
    timed: Timed


def compare(
    session: Session, state: AppState, server: str, span: TimeRange, a: str | None, b: str | None
) -> TimingComparison:
    """Return b against a. A side is a launch id or ``FROM/TO``.

    Without a choice: the newest launch of the range against the one before it; with b alone, b against the
    launch before it. Raises `NotFound` and `InvalidInput`.
    """
    row = server_by_name(session, server)
    if a is not None and b is None:
        raise InvalidInput(
            "a alone says nothing: give b too, or neither for the newest launch and the one before"
        )
    after = _side(session, state, row.id, span, b) if b else _newest(session, state, row.id, span)
    before = _side(session, state, row.id, span, a) if a else _before(session, state, after, span)
    if before is None or after is None:
        return _nothing(server, NO_PAIR, before, after)
    level = _common(before.timed, after.timed)
    one, other = (facts_of(side.timed, level) for side in (before, after))
    if level is Level.NONE or one is None or other is None:
        return _nothing(server, NO_LEVEL, before, after)
    return _compared(server, (before, one), (after, other), level)


def _newest(session: Session, state: AppState, server_id: int, span: TimeRange) -> Side | None:
    found = launches_between(session, server_id, span.from_ms, span.to_ms)
    return _of_launch(session, state, found[-1], span) if found else None


def _before(session: Session, state: AppState, after: Side | None, span: TimeRange) -> Side | None:
    """Measure the launch before that speculates alike; without one, the launch before."""
    if after is None or after.launch is None:
        return None
    nearest = found = previous_launch(session, after.launch)
    for _ in range(MAX_BACK):
        if found is None or is_plain(found) == is_plain(after.launch):
            break
        found = previous_launch(session, found)
    chosen = found or nearest
    return _of_launch(session, state, chosen, span) if chosen else None


def _side(session: Session, state: AppState, server_id: int, span: TimeRange, text: str) -> Side:
    if BETWEEN in text:
        start, _, end = text.partition(BETWEEN)
        from_ms, to_ms = (parse_instant(part, span.now_ms, "a side's time") for part in (start, end))
        window_of(from_ms, to_ms, max(to_ms, 1))  # refuses an empty one
        launches = choose_launches(session, server_id, None, from_ms, to_ms)
        timed = measure(session, state, server_id, launches, from_ms, to_ms, span.now_ms)
        newest = launches[-1] if len(launches) == 1 else None
        return Side(f"{to_iso(from_ms)[:16]} to {to_iso(to_ms)[:16]}", newest, timed)
    launch = launch_by_id(session, text)
    if launch is None or launch.server_id != server_id:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidInput(
                f"{text[:40]!r} is neither a launch id nor FROM/TO; see /api/v1/servers/NAME/launches"
            )
        raise NotFound(f"this server has no launch {text}; see /api/v1/servers/NAME/launches")
    return _of_launch(session, state, launch, span)


def _of_launch(session: Session, state: AppState, launch: Launch, span: TimeRange) -> Side:
    """Measure a whole launch, of a long one its last day."""
    to_ms = min(launch.last_seen_ms + 1, span.now_ms)
    from_ms = max(launch.first_seen_ms, to_ms - LOOK_BACK_MS)
    timed = measure(
        session, state, launch.server_id, [launch], min(from_ms, to_ms - 1), to_ms, span.now_ms
    )  # fmt: skip
    return Side(f"launch {launch.id}", launch, timed)


def _common(before: Timed, after: Timed) -> Level:
    """Return the best level that both sides have: different ones are never compared."""
    both = [level for level in LEVELS if before.of_level(level) and after.of_level(level)]
    return both[0] if both else Level.NONE


def _compared(
    server: str, before: tuple[Side, Facts], after: tuple[Side, Facts], level: Level
) -> TimingComparison:
    one, other = before[1], after[1]
    phases = _phases(one, other)
    matched = same_batch(one.track, other.track)
    state, words = _verdict(one, other, phases, matched.phases)
    return TimingComparison(
        server=server,
        is_demo=any(item.launch.is_demo for side in (before[0], after[0]) for item in side.timed.launches),
        state=state,
        verdict=words,
        evidence=level,
        interval_method=METHOD,
        a=_described(*before),
        b=_described(*after),
        phases=phases,
        same_batch=matched.phases,
        note=matched.note,
    )


def _phases(one: Facts, other: Facts) -> list[ComparedPhase]:
    inside = [phase for phase in Phase if phase in one.track.cycle or phase in other.track.cycle]
    rows = [compared(CYCLE, "whole cycle", one.track.cycle_ms, other.track.cycle_ms)]
    for phase in inside:
        row = compared(phase, TITLES[phase], *(facts.track.phase_ms(phase) if phase in facts.track.cycle
                       else Ratio(None) for facts in (one, other)))  # fmt: skip
        if row.a_ms or row.b_ms:
            rows.append(row)
    return rows


def compared(name: str, title: str, a: Ratio, b: Ratio) -> ComparedPhase:
    """Return one phase on both sides with the interval of its change."""
    change = relative_change(a, b)
    is_certain = change.low is not None and change.high is not None and not change.low <= 0 <= change.high
    difference = None if a.value is None or b.value is None else b.value - a.value
    return ComparedPhase(
        phase=name, title=title, a_ms=a.value, a_low=a.low, a_high=a.high, b_ms=b.value, b_low=b.low,
        b_high=b.high, difference_ms=difference, change=change.value, low=change.low, high=change.high,
        is_certain=is_certain,
    )  # fmt: skip


def _verdict(
    one: Facts, other: Facts, phases: Sequence[ComparedPhase], matched: Sequence[ComparedPhase]
) -> tuple[str, str]:
    if min(one.cycles, other.cycles) < MIN_CYCLES:
        return "unknown", f"Too few cycles to compare: {one.cycles:.0f} and {other.cycles:.0f}"
    told = {row.phase: row for row in phases}
    main = told.get(Phase.VERIFY) or told[CYCLE]
    if main.change is None:
        main = told[CYCLE]
    words = f"{main.title[0].upper()}{main.title[1:]} {_change(main)}"
    if main.phase != CYCLE and told[CYCLE].change is not None:
        words += f", the whole cycle {_change(told[CYCLE])}"
    same = next((row for row in matched if row.phase == main.phase and row.change is not None), None)
    if same is not None:
        words += f"; at equal batch sizes {main.title} {_change(same)}"
    if not main.is_certain:
        return "unknown", f"{words}: no change that stands out of the noise"
    return ("ok" if (main.change or 0.0) < 0 else "warn"), words


def _change(row: ComparedPhase) -> str:
    if row.change is None:
        return "is on one side only"
    bounds = "" if row.low is None or row.high is None else f" ({_share(row.low)} … {_share(row.high)})"
    return f"{_share(row.change)}{bounds}"


def _share(value: float) -> str:
    return f"{100 * value:+.1f} %".replace("-", "−")


def _described(side: Side, facts: Facts | None) -> TimingSide:
    launch: TimedLaunch | None = timed_launch(side.launch) if side.launch else None
    return TimingSide(
        words=side.words,
        launch=launch,
        evidence=facts.level if facts else Level.NONE,
        cycles=facts.cycles if facts else None,
        accept_length=facts.length.value if facts else None,
        requests_per_cycle=facts.batch if facts else None,
        tokens_per_second=facts.rate if facts else None,
    )


def _nothing(server: str, words: str, before: Side | None, after: Side | None) -> TimingComparison:
    sides = [side for side in (before, after) if side]
    return TimingComparison(
        server=server,
        is_demo=any(item.launch.is_demo for side in sides for item in side.timed.launches),
        state="unknown",
        verdict=words,
        evidence=Level.NONE,
        interval_method="",
        a=_described(before, None) if before else None,
        b=_described(after, None) if after else None,
        phases=[],
        same_batch=[],
        note="",
    )
