"""What is still worth saying to a receiver that could not be told for a while (pure).

Notifications of one group that wait one behind the other are joined into the newest: of each alert only the
last state counts, and an alert that began and ended while nobody could be told is not told of at all. Nothing
is joined that the receiver may have taken already.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from specscope_server.alerts.channels.notification import Card, Notification

STALE_MS = 60_000
"""Age from which a notification that waits may be joined with the next ones."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One notification that waits."""

    id: int
    notification: Notification
    created_ms: int
    attempts: int
    may_be_taken: bool
    """An attempt ended without an answer."""


def joinable(waiting: Sequence[Waiting], now_ms: int) -> bool:
    """Tell whether the notifications of one group, oldest first, are to be joined."""
    if len(waiting) < 2 or any(entry.may_be_taken for entry in waiting):
        return False
    head = waiting[0]
    return head.attempts > 0 or now_ms - head.created_ms >= STALE_MS


def joined(waiting: Sequence[Waiting]) -> Notification:
    """Return the newest notification with the last state of every alert of all of them.

    It is an acknowledgement only if all are: who was not told of a fire cannot be told that it was taken.
    """
    newest = waiting[-1].notification
    last: dict[str, Card] = {}
    for entry in waiting:
        last |= {card.alert_id: card for card in entry.notification.alerts}
    cards = sorted(last.values(), key=lambda card: (card.status != "firing", card.starts_ms, card.alert_id))
    is_firing = any(card.status == "firing" for card in cards)
    causes = [entry.notification.cause for entry in waiting]
    cause = next((each for each in reversed(causes) if each != "acknowledged"), newest.cause)
    return msgspec.structs.replace(
        newest, alerts=cards, cause=cause, status="firing" if is_firing else "resolved"
    )


def without_untold(
    notification: Notification, known: Collection[str], told: Collection[str]
) -> Notification | None:
    """Return the notification without ends of alerts whose beginning never got there; None = nothing is left.

    ``known``: ids of alerts that some notification to this channel calls firing. ``told``: those of them that
    the receiver took, or may have taken.
    """
    kept = [
        card
        for card in notification.alerts
        if card.status == "firing" or card.alert_id in told or card.alert_id not in known
    ]
    return msgspec.structs.replace(notification, alerts=kept) if kept else None


def without_resolved(notification: Notification) -> Notification | None:
    """Return the notification for a channel that is not told of ends; None = nothing is left."""
    kept = notification.firing
    return msgspec.structs.replace(notification, alerts=kept) if kept else None
