"""What can be alerted on about time. Every number is the summary's own, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.plain import ended
from specscope_server.acceptance.rolling import cuts
from specscope_server.acceptance.schemas import Number
from specscope_server.acceptance.signals import floats, series_of
from specscope_server.acceptance.windows import fine_window
from specscope_server.kit.signal import (
    Read,
    ReadOne,
    Signal,
    SignalQuery,
    SignalSeries,
    Target,
    Why,
    each_server,
)
from specscope_server.store.lookup import choose_launches
from specscope_server.timing import timed_numbers as worded
from specscope_server.timing.baseline import break_even
from specscope_server.timing.checks import unattributed_share
from specscope_server.timing.phases import Phase
from specscope_server.timing.ranks import skew_of
from specscope_server.timing.rolling import Moment, before, cut_scheduler, moments, plain_steps
from specscope_server.timing.same_batch import same_batch
from specscope_server.timing.schemas import ComparedPhase, Level
from specscope_server.timing.series import find_time_series, read_schedulers
from specscope_server.timing.statistics import MIN_CYCLES, per_cycle_ms, total

PAGE = "/time"
MAX_RANK_BUCKETS = 500

Word = Callable[[Session, SignalQuery, Moment], Number]


def _reader(word: Word, *, of_drafts: bool = False) -> Read:
    def read(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        found = moments(session, query, server)
        if not any(moment.timed.launches for moment in found):
            return []
        numbers = [word(session, query, moment) for moment in found]
        series = [series_of(server, numbers, [moment.timed.context for moment in found])]
        if not of_drafts:
            return series
        launches = choose_launches(session, server.id, query.launch, query.begin_ms, query.to_ms)
        return ended(query, launches, series)

    return each_server(read)


def _speed_up(session: Session, query: SignalQuery, moment: Moment) -> Number:
    steps = plain_steps(session, query, moment)
    even = break_even(moment.facts.track, steps) if steps and moment.facts else None
    return worded.speed_up(moment.timed, moment.facts, steps, even)


def _break_even(session: Session, query: SignalQuery, moment: Moment) -> Number:
    steps = plain_steps(session, query, moment)
    even = break_even(moment.facts.track, steps) if steps and moment.facts else None
    return worded.break_even_length(moment.timed, moment.facts, steps, even)


def _plainly(word: Callable[..., Number]) -> Word:
    return lambda session, query, moment: word(moment.timed, moment.facts)


def _shares(name: str) -> ReadOne:
    """Return a reader of a share of observed time that has no interval."""

    def read(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        found = moments(session, query, server)
        values = [_share(name, moment) for moment in found]
        if all(value is None for value in values):
            return []
        why = [Why.NO_DATA if value is None else Why.OK for value in values]
        n = floats(moment.facts.cycles if moment.facts else None for moment in found)
        return [SignalSeries({"server": server.name}, floats(values), np.array(why, dtype=np.uint8), n)]

    return read


def _share(name: str, moment: Moment) -> float | None:
    facts = moment.facts
    if facts is None or facts.level is Level.GAUGES:
        return None
    if name == "unattributed":
        return unattributed_share(facts) if facts.cycles >= MIN_CYCLES else None
    idle, wall = facts.track.beside.get(Phase.IDLE), total(facts.track.wall)
    return total(idle) / wall if idle is not None and wall > 0 else None


def _verify_change(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    found = moments(session, query, server)
    rows = [_change(session, query, server, moment) for moment in found]
    if all(row is None for row, _ in rows):
        return []
    values = [(row.change, row.low, row.high) if row else (None, None, None) for row, _ in rows]
    why = [_why_change(moment, row) for moment, (row, _) in zip(found, rows, strict=True)]
    newest, note = rows[-1]
    if query.held_ms is not None:
        since = "compared with the day before this began"
        note = f"{note}; {since}" if note else since
    evidence = (
        {} if newest is None else {"before_ms": newest.a_ms, "now_ms": newest.b_ms, "phase": newest.phase}
    )
    return [
        SignalSeries(
            {"server": server.name}, floats(value for value, _, _ in values), np.array(why, dtype=np.uint8),
            floats(moment.facts.cycles if moment.facts else None for moment in found),
            floats(low for _, low, _ in values), floats(high for _, _, high in values), note=note,
            evidence=evidence,
        )
    ]  # fmt: skip


def _change(
    session: Session, query: SignalQuery, server: Target, moment: Moment
) -> tuple[ComparedPhase | None, str]:
    """Return verify (where that is not told apart, the cycle) against the day before, at equal batches."""
    facts = moment.facts
    if facts is None or facts.track.is_plain or facts.cycles < MIN_CYCLES:
        return None, ""
    earlier = before(session, query, server, moment)
    track = earlier.track(facts.level) if earlier else None
    if track is None or track.is_plain:
        return None, "nothing comparable was measured in the day before"
    matched = same_batch(track, facts.track)
    rows = {row.phase: row for row in matched.phases if row.change is not None}
    return rows.get("verify", rows.get("cycle")), matched.note


def _why_change(moment: Moment, row: ComparedPhase | None) -> Why:
    if row is not None:
        return Why.STALE if moment.timed.context.is_stale else Why.OK
    return Why.IDLE if moment.timed.context.measured.ends_idle else Why.NO_DATA


def _by_batch(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    found = moments(session, query, server)
    keys = sorted({key for moment in found if moment.facts for key in moment.facts.track.cells})
    return [series for key in keys if (series := _of_cell(server, found, key)) is not None]


def _of_cell(server: Target, found: Sequence[Moment], key: tuple[str, str]) -> SignalSeries | None:
    cells = [moment.facts.track.cells.get(key) if moment.facts else None for moment in found]
    times = [
        None if cell is None or cell.verify is None else per_cycle_ms(cell.verify, cell.cycles)
        for cell in cells
    ]
    if all(time is None for time in times):
        return None
    cycles = [0.0 if cell is None else total(cell.cycles) for cell in cells]
    why = [
        Why.NO_DATA if time is None or time.value is None else Why.FEW if count < MIN_CYCLES / 4 else Why.OK
        for time, count in zip(times, cycles, strict=True)
    ]
    return SignalSeries(
        {"server": server.name, "batch": key[0], "num_draft_tokens": key[1]},
        floats(None if time is None else time.value for time in times), np.array(why, dtype=np.uint8),
        floats(cycles), floats(None if time is None else time.low for time in times),
        floats(None if time is None else time.high for time in times),
    )  # fmt: skip


def _skew(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    launches = choose_launches(session, server.id, query.launch, query.begin_ms, query.to_ms)[-1:]
    series = find_time_series(session, launches)
    if not launches or not series[launches[0]]:
        return []
    most = MAX_RANK_BUCKETS * len(query.times_ms)
    whole = fine_window(query.begin_ms, query.to_ms, query.state.scrape_interval_ms, most)
    schedulers = read_schedulers(session, series, whole).get(launches[0].id, [])
    found = [skew_of([cut_scheduler(one, cut) for one in schedulers]) for cut in cuts(query, whole)]
    if all(skew is None for skew, _, _ in found):
        return []
    why = [
        Why.NO_DATA if skew is None else Why.FEW if cycles < MIN_CYCLES else Why.OK
        for skew, _, cycles in found
    ]
    return [
        SignalSeries(
            {"server": server.name}, floats(skew for skew, _, _ in found), np.array(why, dtype=np.uint8),
            floats(cycles for _, _, cycles in found), evidence={"straggler": found[-1][1]},
            note=f"the others wait for {found[-1][1]}" if found[-1][1] else "",
        )
    ]  # fmt: skip


def _signal(name: str, unit: str, meaning: str, read: Read, **more: bool | tuple[str, ...]) -> Signal:
    return Signal(
        f"timing.{name}", unit, meaning, read, n_unit="cycles", page=PAGE,
        has_interval=bool(more.get("interval", True)), has_baseline=bool(more.get("baseline", False)),
        labels=tuple(more.get("labels", ())),  # type: ignore[arg-type]
    )  # fmt: skip


SIGNALS: tuple[Signal, ...] = (
    _signal("cycle_time", "ms", "T_c: time of a cycle.", _reader(_plainly(worded.cycle_time))),
    _signal("verify_time", "ms", "T_v: time of a verify, over all batch sizes met.",
            _reader(_plainly(worded.verify_time))),
    _signal("verify_time_at_batch", "ms", "T_v at one batch size and D.", each_server(_by_batch),
            labels=("batch", "num_draft_tokens")),
    _signal("verify_change", "1", "Change of T_v against the day before at equal batch sizes: 0.2 = 20 % "
            "slower. Where verify is not told apart, of the whole cycle.", each_server(_verify_change),
            baseline=True),
    _signal("verify_share", "1", "Share of the cycle that verify takes.",
            _reader(_plainly(worded.verify_share))),
    _signal("speed_up", "×", "τ / τ*: how many times faster than without speculation, at equal batch sizes.",
            _reader(_speed_up, of_drafts=True)),
    _signal("break_even", "tokens/cycle", "τ* = T_c / T_ar: below it, speculation costs time.",
            _reader(_break_even, of_drafts=True)),
    _signal("tokens_per_second", "tokens/s", "Tokens per second of active decode time.",
            _reader(_plainly(worded.rate)), interval=False),
    _signal("requests_per_cycle", "requests", "B: requests in a cycle, on average.",
            _reader(_plainly(worded.batch)), interval=False),
    _signal("idle_share", "1", "Share of the observed time with nothing to do.", each_server(_shares("idle")),
            interval=False),
    _signal("unattributed_share", "1", "Share of the cycle that no source explains.",
            each_server(_shares("unattributed")), interval=False),
    _signal("rank_skew", "1", "Difference between the longest and the shortest verify inside a "
            "tensor-parallel group, over its median.", each_server(_skew), interval=False),
)  # fmt: skip
"""`kit.signal.Signal`s of this domain."""
