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
    """An attempt got there, or ended without an answer."""


def joinable(waiting: Sequence[Waiting], now_ms: int) -> bool:
    """Tell whether the notifications of one group, oldest first, are to be joined."""
    if len(waiting) < 2 or any(entry.may_be_taken for entry in waiting):
        return False
    return is_old(waiting[0].attempts, waiting[0].created_ms, now_ms)


def is_old(attempts: int, created_ms: int, now_ms: int) -> bool:
    """Tell whether a notification waits for longer than it takes to send it."""
    return attempts > 0 or now_ms - created_ms >= STALE_MS


def joined(waiting: Sequence[Waiting]) -> Notification:
    """Return the newest notification with the last state of every alert of all of them.

    It is an acknowledgement only if all are: who was not told of a fire cannot be told that it was taken.
    What was new in one of them is new in it.
    """
    newest = waiting[-1].notification
    last: dict[str, Card] = {}
    new: set[str] = set()
    for entry in waiting:
        last |= {card.alert_id: card for card in entry.notification.alerts}
        new |= {card.alert_id for card in entry.notification.alerts} - set(entry.notification.known)
    cards = sorted(last.values(), key=lambda card: _order(card, new))
    is_firing = any(card.status == "firing" for card in cards)
    causes = [entry.notification.cause for entry in waiting]
    cause = next((each for each in reversed(causes) if each != "acknowledged"), newest.cause)
    return msgspec.structs.replace(
        newest, alerts=cards, cause=cause, status="firing" if is_firing else newest.status,
        known=[card.alert_id for card in cards if card.alert_id not in new],
        truncated_alerts=_still_left_out(waiting, cards),
    )  # fmt: skip


def _order(card: Card, new: Collection[str]) -> tuple[bool, bool, int, str]:
    return card.alert_id not in new, card.status != "firing", card.starts_ms, card.alert_id


def _still_left_out(waiting: Sequence[Waiting], cards: Sequence[Card]) -> int:
    """Return how many the newest decision left out that none of the earlier ones brings in."""
    newest = waiting[-1].notification
    same = [entry.notification for entry in waiting if entry.notification.made_ms == newest.made_ms]
    told = {card.alert_id for notification in same for card in notification.alerts}
    brought = sum(card.status == "firing" and card.alert_id not in told for card in cards)
    return max(newest.truncated_alerts - brought, 0)


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
