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
    severity: Mapping[str, str] = field(default_factory=dict)
    """Alert id → its severity as the channel was told, as far as it is known."""


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
RANKED = ("info", "warning", "critical")


def decide(
    told: Told,
    firing: Sequence[Alert],
    on: Mapping[str, Alert],
    now_ms: int,
    route: Route,
    failures: Failures = NOTHING_FAILED,
    valid_ms: int | None = None,
) -> Decision:
    """Return the decision.

    ``firing``: alerts of the group that are not muted. ``on``: all alerts that fire by id, muted ones and
    those of other groups too. ``valid_ms``: after which the channel takes an alert for over that it is not
    told of again; None = it does not.
    """
    there = {key: by for key, by in told.firing.items() if key not in failures.lost}
    told = replace(told, firing={**dict.fromkeys(sorted(failures.unended), ""), **there})
    held = {alert.alert_id for alert in firing if alert.alert_id in failures.held} - told.firing.keys()
    firing = [alert for alert in firing if alert.alert_id not in held]
    if held and not (firing or told.firing):
        return Decision(f"{len(held)} refused lately, told again later", replace(told, next_flush_ms=None))
    loud = {alert.alert_id for alert in firing}
    new = sorted(loud - told.firing.keys())
    over = sorted(told.firing.keys() - loud - on.keys())
    kept = [] if valid_ms is None else [on[key] for key in sorted(told.firing.keys() - loud) if key in on]
    taken = [alert for alert in firing if alert.acked_by != told.firing.get(alert.alert_id, alert.acked_by)]
    graded = [alert for alert in firing if _is_regraded(told, alert)]
    if not (new or over or taken or graded):
        return _unchanged(told, firing, kept, now_ms, route, valid_ms)
    is_worse = _is_worse(told, [alert for alert in firing if alert.alert_id in new or alert in graded])
    due_ms = _due_ms(told, now_ms, route, is_urgent=not (new or over or graded), is_worse=is_worse)
    if now_ms < due_ms:
        waits = "group interval" if told.firing and not is_worse else "group wait"
        reason = f"{_counted(new, over, graded)} waits for the {waits}"
        return Decision(reason, replace(told, next_flush_ms=due_ms))
    cause = _cause(told, [*new, *graded], over, is_over=not (firing or kept))
    if cause == "acknowledged" and not all(alert.acked_by for alert in taken):
        cause = "repeat"  # nobody looks after it any more, and that is news to every channel
    # A channel that forgets has no word for acknowledgements: those leave its time running.
    sent_ms = told.last_sent_ms if cause == "acknowledged" and valid_ms is not None else now_ms
    changed = frozenset({*new, *(alert.alert_id for alert in (*taken, *graded))})
    knows = _knows(told, [*firing, *kept], on, sent_ms)
    return Decision(_said(cause, new, over, taken, graded), knows, cause, [*firing, *kept], over, changed)


def _knows(told: Told, alerts: Sequence[Alert], on: Collection[str], sent_ms: int | None) -> Told:
    """Return what the channel knows when it was told of these."""
    firing = {key: by for key, by in told.firing.items() if key in on}
    severity = {key: word for key, word in told.severity.items() if key in firing}
    return Told(
        {**firing, **{alert.alert_id: alert.acked_by for alert in alerts}},
        None,
        sent_ms,
        {**severity, **{alert.alert_id: alert.card.severity for alert in alerts}},
    )


def _is_regraded(told: Told, alert: Alert) -> bool:
    """Tell whether its severity is another one than the channel was told."""
    return told.severity.get(alert.alert_id, alert.card.severity) != alert.card.severity


def _is_worse(told: Told, alerts: Sequence[Alert]) -> bool:
    """Tell whether one of these is worse than anything that the channel knows of."""
    known = [told.severity.get(key, RANKED[-1]) for key in told.firing]
    ranks = [RANKED.index(alert.card.severity) for alert in alerts]
    return bool(known and ranks) and max(ranks) > max(map(RANKED.index, known))


def _unchanged(
    told: Told, firing: Sequence[Alert], kept: Sequence[Alert], now_ms: int, route: Route,
    valid_ms: int | None,
) -> Decision:  # fmt: skip
    quiet = replace(told, next_flush_ms=None)
    if told.next_flush_ms is not None and not told.firing:
        return Decision("over, or muted, before anybody was told", quiet)
    alerts = [*firing, *kept]
    waited_ms = now_ms - (told.last_sent_ms or 0)
    if alerts and valid_ms is not None and abs(waited_ms) >= valid_ms // 2:
        return Decision(
            "else it would end there", _knows(told, alerts, told.firing, now_ms), "repeat", alerts
        )
    if not firing:
        return Decision("what it was told of is muted" if told.firing else "nothing fires", quiet)
    if all(alert.acked_by for alert in firing):
        return Decision("told already, and somebody took it", quiet)
    if -route.repeat_interval <= waited_ms < route.repeat_interval:  # further ahead: the clock was set back
        return Decision("told already, nothing changed", quiet)
    return Decision("it still fires", _knows(told, alerts, told.firing, now_ms), "repeat", alerts)


def _due_ms(told: Told, now_ms: int, route: Route, *, is_urgent: bool, is_worse: bool) -> int:
    """Return when the change is told: fixed when it was first seen, so that a restart waits no longer. What
    is worse than all that was told waits for others no longer than what is first in its group.
    """
    if is_urgent:
        return now_ms
    soon_ms = now_ms + route.group_wait
    if told.next_flush_ms is not None:
        due_ms = min(told.next_flush_ms, now_ms + max(route.group_wait, route.group_interval))
    else:
        due_ms = max(now_ms, (told.last_sent_ms or 0) + route.group_interval) if told.firing else soon_ms
    return min(due_ms, soon_ms) if is_worse else due_ms


def _cause(told: Told, new: Sequence[object], over: Sequence[str], *, is_over: bool) -> Cause:
    if over and is_over:
        return "resolved"
    if new and not told.firing:
        return "new"
    return "changed" if new or over else "acknowledged"


def _said(
    cause: Cause, new: Sequence[str], over: Sequence[str], taken: Sequence[Alert], graded: Sequence[Alert]
) -> str:  # fmt: skip
    if cause == "acknowledged":
        return f"{len(taken)} acknowledged"
    if cause == "repeat":
        return f"it still fires, and nobody looks after {sum(not alert.acked_by for alert in taken)} any more"
    return _counted(new, over, graded)


def _counted(new: Sequence[str], over: Sequence[str], graded: Sequence[Alert]) -> str:
    parts = [f"{len(new)} new" if new else "", f"{len(over)} over" if over else ""]
    parts.append(f"{len(graded)} of another severity" if graded else "")
    return ", ".join(filter(None, parts)) or "a change"


def digest_of(told: Told) -> str:
    """Return a hash of what the channel knows, for people who compare rows."""
    text = "\n".join(f"{key} {by}" for key, by in sorted(told.firing.items()))
    return sha256(text.encode()).hexdigest()[:16]
