"""What is wrong with telling people: threads that fail, channels that fail, notifications that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, or_, select

from specscope_server.alerts.delivery.breaker import breaker_of
from specscope_server.alerts.delivery.outbox import CLAIMED, PENDING
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.health import DEGRADED
from specscope_server.models import Channel, Delivery

LATE_MS = 10 * 60_000
"""For so long nothing that is due waits for a channel that works: with 60 a minute that are 600."""


@dataclass(frozen=True, slots=True)
class FailingChannel:
    """A channel that people are not told through although they believe it."""

    name: str
    since_ms: int
    reason: str
    """Why the server turned it off; '' = it is on and tried again."""

    @property
    def since(self) -> str:
        """Return since when, as the API writes times."""
        return to_iso(self.since_ms)


def failing_channels(connection: Connection) -> list[FailingChannel]:
    """Return the channels whose deliveries fail, and those that the server turned off for it, by name."""
    query = select(Channel.name, Channel.enabled, Channel.disabled_reason, Channel.breaker)
    found = []
    for row in connection.execute(query.order_by(Channel.name)):
        breaker = breaker_of(row.breaker)
        since = [each for each in (breaker.opened_ms, breaker.told_ms) if each is not None]
        if since:  # one that a person turned off has a breaker without either
            found.append(FailingChannel(row.name, min(since), "" if row.enabled else row.disabled_reason))
    return found


def waiting_ms(connection: Connection, now_ms: int) -> int:
    """Return for how long the notification is due that waits longest, of channels that are on; 0 = none."""
    due_ms = func.min(
        func.coalesce(Delivery.claimed_until_ms, Delivery.next_attempt_ms)
    )  # claimed: due again when the time of who claimed it is over
    is_due = or_(
        and_(Delivery.status == PENDING, Delivery.next_attempt_ms <= now_ms),
        and_(Delivery.status == CLAIMED, Delivery.claimed_until_ms <= now_ms),
    )
    on = select(Channel.name).where(Channel.enabled)
    since_ms = connection.scalar(select(due_ms).where(is_due, Delivery.channel.in_(on)))
    return 0 if since_ms is None else max(now_ms - int(since_ms), 0)


def threads_trouble(threads: Mapping[str, str | None]) -> str:
    """Return what is wrong with the threads; '' = nothing. ``threads``: name → what ended its last turn
    (``''`` = nothing did), None = it is no more.
    """
    told = [
        f"the thread {name!r} has ended; restart the server" if why is None else f"{name} fails: {why}"
        for name, why in sorted(threads.items())
        if why != ""
    ]
    return f"{'; '.join(told)}; see the log" if told else ""


def degraded(failing: Sequence[FailingChannel], broken: Mapping[str, str], late_ms: int) -> str:
    """Return what is wrong although rules are evaluated and channels tried; '' = nothing. Names no channel:
    health is told without a token.

    ``broken``: channel → kind of the error of ours that ends each of its turns.
    """
    told = [f"delivery breaks off: {why}, see the log" for why in sorted(set(broken.values()))]
    if failing:
        since = to_iso(min(each.since_ms for each in failing))
        count = "1 channel" if len(failing) == 1 else f"{len(failing)} channels"
        told.append(f"alerts do not get through to {count}, since {since}: see the page Alerts")
    if late_ms >= LATE_MS:
        told.append(f"the oldest notification that is due waits for {late_ms // 60_000} minutes")
    return f"{DEGRADED}{'; '.join(told)}" if told else ""
