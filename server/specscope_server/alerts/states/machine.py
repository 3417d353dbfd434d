"""One step of an alert (pure): from its state and what was read now to the next state.

    normal ──breach──▶ pending ──for──▶ firing ──ok──▶ recovering ──keep_firing_for──▶ resolved ─▶ pending …
                          └──ok──▶ normal      ◀──breach──┘

`no_data` and `error` stand apart: of a series that is neither pending nor firing they are its state; one that
is stays what it is, and the time in which nothing is known counts neither towards a fire nor towards its end.
A fire has one resolve: while it recovers it is still the same fire.

From the first breach until it is over, what the alert is compared with stands still (`held_ms`): else a
change that lasts would become its own yardstick, and the alert would end although nothing got better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from specscope_server.alerts.rules.reading import Status
from specscope_server.alerts.rules.schema import NoData
from specscope_server.alerts.states.identity import alert_id_of


class State(StrEnum):
    """Where an alert stands."""

    NORMAL = "normal"
    PENDING = "pending"
    FIRING = "firing"
    RECOVERING = "recovering"
    RESOLVED = "resolved"
    """Over; else as normal."""
    NO_DATA = "no_data"
    ERROR = "error"


ON = frozenset({State.FIRING, State.RECOVERING})
"""The alert fires: people are told, or were."""
WAITING = frozenset({State.PENDING, *ON})
"""A series that vanishes from one of these must be noticed."""
IS_MISSING = "the series is missing: "
MISSING = f"{IS_MISSING}nothing reports it any more"


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things must last; milliseconds."""

    for_ms: int = 0
    keep_firing_ms: int = 0
    missing_ms: int = 60_000
    """A series that fires must be missing this long at least: one read that failed ends nothing."""
    gap_ms: int = 300_000
    """A longer time without any evaluation (the server was down) counts as time in which nothing is known."""
    no_data: NoData = NoData.KEEP


@dataclass(frozen=True, slots=True)
class AlertState:
    """One rule and label set. Times are UTC epoch milliseconds."""

    fingerprint: str
    state: State = State.NORMAL
    since_ms: int = 0
    seen_ms: int = 0
    counting_since_ms: int | None = None
    alert_id: str | None = None
    fired_ms: int | None = None
    breach_last_ms: int | None = None
    resolved_ms: int | None = None
    breach_since_ms: int | None = None
    """When it began to breach, recoveries that were none included; None = it is over, or never did."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of state."""

    from_state: State
    to_state: State
    at_ms: int
    reason: str
    alert_id: str | None
    """Of the fire that begins, goes on or ends; None = there is none."""


class Seen(StrEnum):
    """What a reading means for the alert."""

    BREACH = "breach"
    OK = "ok"
    UNKNOWN = "unknown"
    ERROR = "error"
    VANISHED = "vanished"


def advance(
    before: AlertState, status: Status | None, now_ms: int, timing: Timing, reason: str = ""
) -> tuple[AlertState, Transition | None]:
    """Return the next state, and the transition if it is another one.

    ``status`` None: the series vanished; `Status.GONE`: it did, and the reason tells why. ``reason``: in
    words, from the reading. A clock that was set back takes nothing away from what was counted.
    """
    seen = _meaning(status, timing.no_data)
    after = _next(_counted(before, seen, now_ms, timing), seen, now_ms, timing)
    after = replace(after, seen_ms=now_ms)
    if after.state is before.state:
        return after, None
    after = replace(after, since_ms=now_ms)
    why = MISSING if status is None else f"{IS_MISSING}{reason}" if seen is Seen.VANISHED else reason
    is_of_fire = not ON.isdisjoint((before.state, after.state))
    return after, Transition(
        before.state, after.state, now_ms, why, after.alert_id if is_of_fire else None
    )  # fmt: skip


def held_ms(state: AlertState, now_ms: int, hold_ms: int) -> int | None:
    """Return the instant at which the baseline of an alert stands still now; None = it moves on.

    It does for ``hold_ms`` after the first breach at most: what lasts longer is what is normal now.
    """
    began_ms = state.breach_since_ms
    if began_ms is None or state.state not in WAITING or not began_ms <= now_ms < began_ms + hold_ms:
        return None
    return began_ms


def retire(before: AlertState, now_ms: int, reason: str) -> tuple[AlertState, Transition | None]:
    """Return the state after its rule was turned off or removed: whatever it was is over."""
    if before.state in (State.NORMAL, State.RESOLVED):
        return before, None
    is_on = before.state in ON
    to = State.RESOLVED if is_on else State.NORMAL
    after = replace(
        before,
        state=to,
        since_ms=now_ms,
        seen_ms=now_ms,
        counting_since_ms=None,
        resolved_ms=now_ms if is_on else before.resolved_ms,
        breach_since_ms=None,
    )
    return after, Transition(before.state, to, now_ms, reason, before.alert_id if is_on else None)


def _meaning(status: Status | None, no_data: NoData) -> Seen:
    if status in (None, Status.GONE):
        return Seen.VANISHED
    if status is Status.NO_DATA:
        return {NoData.KEEP: Seen.UNKNOWN, NoData.OK: Seen.OK, NoData.ALERT: Seen.BREACH}[no_data]
    return {Status.OK: Seen.OK, Status.BREACH: Seen.BREACH}.get(status, Seen.ERROR)


def _counted(before: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    """Leave time in which nothing was known out of what is counted."""
    step_ms = now_ms - before.seen_ms
    if before.counting_since_ms is None:
        return before
    if seen in (Seen.UNKNOWN, Seen.ERROR) or not 0 <= step_ms <= timing.gap_ms:
        return replace(before, counting_since_ms=before.counting_since_ms + step_ms)
    return before


def _next(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    match now.state:
        case State.PENDING:
            return _from_pending(now, seen, now_ms, timing)
        case State.FIRING:
            return _from_firing(now, seen, now_ms, timing)
        case State.RECOVERING:
            return _from_recovering(now, seen, now_ms, timing)
        case _:
            return _from_quiet(now, seen, now_ms, timing)


def _from_quiet(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    match seen:
        case Seen.BREACH:
            begun = replace(
                now, state=State.PENDING, counting_since_ms=now_ms, breach_last_ms=now_ms,
                breach_since_ms=now_ms,
            )  # fmt: skip
            return _fire_if_due(begun, now_ms, timing)
        case Seen.UNKNOWN if now.state is not State.RESOLVED:
            return replace(now, state=State.NO_DATA)
        case Seen.ERROR if now.state is not State.RESOLVED:
            return replace(now, state=State.ERROR)
        case _:
            return now if now.state is State.RESOLVED else replace(now, state=State.NORMAL)


def _from_pending(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    match seen:
        case Seen.BREACH:
            return _fire_if_due(replace(now, breach_last_ms=now_ms), now_ms, timing)
        case Seen.OK | Seen.VANISHED:
            return replace(now, state=State.NORMAL, counting_since_ms=None, breach_since_ms=None)
        case _:
            return now


def _fire_if_due(now: AlertState, now_ms: int, timing: Timing) -> AlertState:
    assert now.counting_since_ms is not None
    if now_ms - now.counting_since_ms < timing.for_ms:
        return now
    # Not the time of the last fire, whatever the clock did: each has an id of its own.
    fired_ms = now_ms if now.fired_ms is None else max(now_ms, now.fired_ms + 1)
    return replace(
        now,
        state=State.FIRING,
        counting_since_ms=None,
        alert_id=alert_id_of(now.fingerprint, fired_ms),
        fired_ms=fired_ms,
        resolved_ms=None,
    )


def _from_firing(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    match seen:
        case Seen.BREACH:
            return replace(now, breach_last_ms=now_ms)
        case Seen.OK | Seen.VANISHED:
            recovering = replace(now, state=State.RECOVERING, counting_since_ms=now_ms)
            return _resolve_if_due(recovering, seen, now_ms, timing)
        case _:
            return now


def _from_recovering(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    match seen:
        case Seen.BREACH:
            return replace(now, state=State.FIRING, counting_since_ms=None, breach_last_ms=now_ms)
        case Seen.OK | Seen.VANISHED:
            return _resolve_if_due(now, seen, now_ms, timing)
        case _:
            return now


def _resolve_if_due(now: AlertState, seen: Seen, now_ms: int, timing: Timing) -> AlertState:
    assert now.counting_since_ms is not None
    least_ms = timing.keep_firing_ms
    if seen is Seen.VANISHED:
        least_ms = max(least_ms, timing.missing_ms)
    if now_ms - now.counting_since_ms < least_ms:
        return now
    return replace(
        now, state=State.RESOLVED, counting_since_ms=None, resolved_ms=now_ms, breach_since_ms=None
    )  # fmt: skip
