"""Is there something to tell a channel of a group now? (pure)

What was told is remembered as alert ids. An alert that is muted is not told of; one that was told before and
is over is said to be over even while it is muted: a page that somebody got is closed. One that began and
ended before anybody was told is not told of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from specscope_server.alerts.channels.notification import Cause
from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.pipeline.group import Route


@dataclass(frozen=True, slots=True)
class Told:
    """What a channel knows of a group."""

    firing: Mapping[str, str] = field(default_factory=dict)
    """Alert id → who took it, as the channel was told: told as firing and not as over."""
    next_flush_ms: int | None = None
    last_sent_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and why."""

    reason: str
    told: Told
    """What the channel knows afterwards."""
    cause: Cause | None = None
    """None = nothing is sent."""
    firing: Sequence[Alert] = ()
    over: Sequence[str] = ()
    """Ids of alerts that are over."""
    changed: Collection[str] = ()
    """Ids of those that fire and must be told: new ones, and those that somebody took or gave back."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Ids of alerts of which a channel was to be told, and was not."""

    lost: Collection[str] = ()
    """Fires that were given up."""
    held: Collection[str] = ()
    """Fires that it refused so lately that it is not tried again yet."""
    unended: Collection[str] = ()
    """It knows that they fired, and their end was given up."""


NOTHING_FAILED = Failures()


def decide(
    told: Told,
    firing: Sequence[Alert],
    on: Collection[str],
    now_ms: int,
    route: Route,
    failures: Failures = NOTHING_FAILED,
) -> Decision:
    """Return the decision.

    ``firing``: alerts of the group that are not muted. ``on``: ids of all alerts that fire, muted ones and
    those of other groups too.
    """
    there = {key: by for key, by in told.firing.items() if key not in failures.lost}
    told = replace(told, firing={**dict.fromkeys(sorted(failures.unended), ""), **there})
    held = {alert.alert_id for alert in firing if alert.alert_id in failures.held} - told.firing.keys()
    firing = [alert for alert in firing if alert.alert_id not in held]
    if held and not (firing or told.firing):
        return Decision(f"{len(held)} refused lately, told again later", replace(told, next_flush_ms=None))
    loud = {alert.alert_id for alert in firing}
    new = sorted(loud - told.firing.keys())
    over = sorted(told.firing.keys() - loud - set(on))
    taken = [alert for alert in firing if alert.acked_by != told.firing.get(alert.alert_id, alert.acked_by)]
    if not (new or over or taken):
        return _unchanged(told, firing, now_ms, route)
    due_ms = _due_ms(told, now_ms, route, is_urgent=not (new or over))
    if now_ms < due_ms:
        waits = "group interval" if told.firing else "group wait"
        reason = f"{_counted(new, over)} waits for the {waits}"
        return Decision(reason, replace(told, next_flush_ms=due_ms))
    left = {key: by for key, by in told.firing.items() if key in on}
    knows = {**left, **{alert.alert_id: alert.acked_by for alert in firing}}
    cause = _cause(told, new, over, is_over=not firing)
    changed = frozenset({*new, *(alert.alert_id for alert in taken)})
    return Decision(_said(cause, new, over, taken), Told(knows, None, now_ms), cause, firing, over, changed)


def _unchanged(told: Told, firing: Sequence[Alert], now_ms: int, route: Route) -> Decision:
    quiet = replace(told, next_flush_ms=None)
    if told.next_flush_ms is not None and not told.firing:
        return Decision("over, or muted, before anybody was told", quiet)
    if not firing:
        return Decision("what it was told of is muted" if told.firing else "nothing fires", quiet)
    if all(alert.acked_by for alert in firing):
        return Decision("told already, and somebody took it", quiet)
    waited_ms = now_ms - (told.last_sent_ms or 0)
    if -route.repeat_interval <= waited_ms < route.repeat_interval:  # further ahead: the clock was set back
        return Decision("told already, nothing changed", quiet)
    knows = {**told.firing, **{alert.alert_id: alert.acked_by for alert in firing}}
    return Decision("it still fires", Told(knows, None, now_ms), "repeat", firing)


def _due_ms(told: Told, now_ms: int, route: Route, *, is_urgent: bool) -> int:
    """Return when the change is told: fixed when it was first seen, so that a restart waits no longer."""
    if is_urgent:
        return now_ms
    if told.next_flush_ms is not None:
        return min(told.next_flush_ms, now_ms + max(route.group_wait, route.group_interval))
    if not told.firing:
        return now_ms + route.group_wait
    return max(now_ms, (told.last_sent_ms or 0) + route.group_interval)


def _cause(told: Told, new: Sequence[str], over: Sequence[str], *, is_over: bool) -> Cause:
    if over and is_over:
        return "resolved"
    if new and not told.firing:
        return "new"
    return "changed" if new or over else "acknowledged"


def _said(cause: Cause, new: Sequence[str], over: Sequence[str], taken: Sequence[Alert]) -> str:
    if cause == "acknowledged":
        return f"{len(taken)} acknowledged or given back"
    return _counted(new, over)


def _counted(new: Sequence[str], over: Sequence[str]) -> str:
    parts = [f"{len(new)} new" if new else "", f"{len(over)} over" if over else ""]
    return ", ".join(filter(None, parts)) or "a change"


def digest_of(told: Told) -> str:
    """Return a hash of what the channel knows, for people who compare rows."""
    text = "\n".join(f"{key} {by}" for key, by in sorted(told.firing.items()))
    return sha256(text.encode()).hexdigest()[:16]
