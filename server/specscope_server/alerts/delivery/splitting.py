"""Split what is to be told into notifications that a channel takes whole: nothing new is left out (pure).

A target takes so many alerts in one message. Whatever counts as told must have been in one: what is new and
does not fit goes into a further notification, with a ``webhook-id`` of its own. Alerts that fire as before
were told already; they fill the room that is left, and the rest of them is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from specscope_server.alerts.channels.contract import ChannelConfig, ChannelKind, Others
from specscope_server.alerts.channels.kinds import kind_of
from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.kit.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Room:
    """What one notification to a channel may hold."""

    cards: int = 10
    others: Others = "fill"
    alone: frozenset[str] = frozenset()
    """Ids of alerts of each of which it is told by itself."""


def room_of(kind_name: str, config: str) -> Room:
    """Return the room of a channel's row; of one that cannot be opened, what most have."""
    try:
        kind = kind_of(kind_name)
        return _room(kind, msgspec.json.decode(config, type=dict).get(kind.most_cards_setting))
    except (InvalidInput, msgspec.MsgspecError):
        return Room()


def room_in(kind: ChannelKind, config: ChannelConfig) -> Room:
    """Return the room of a channel of this kind."""
    return _room(kind, getattr(config, kind.most_cards_setting, None))


def _room(kind: ChannelKind, lowered: Any) -> Room:
    most = lowered if isinstance(lowered, int) and lowered > 0 else kind.most_cards
    return Room(min(most, kind.most_cards), kind.others)


def split(whole: Notification, room: Room) -> list[Notification]:
    """Return what is sent of a notification: none when it says nothing that this channel is told of."""
    known = set(whole.known)
    new = [card for card in whole.alerts if card.alert_id not in known]
    others = [card for card in whole.alerts if card.alert_id in known]
    if room.others == "always" or (room.others == "repeat" and whole.cause == "repeat"):
        new, others = [*new, *others], []
    together = [card for card in new if card.alert_id not in room.alone]
    parts = [[card] for card in new if card.alert_id in room.alone]
    parts += [together[start : start + room.cards] for start in range(0, len(together), room.cards)]
    shown = _shown(others, parts, room)
    if shown:
        parts = [*parts[:-1], [*(parts[-1] if parts else []), *shown]]
    left = whole.truncated_alerts + len(others) - len(shown)
    return [
        msgspec.structs.replace(
            whole,
            alerts=cards,
            known=[card.alert_id for card in cards if card.alert_id in known],
            truncated_alerts=left if place == len(parts) else 0,
            part=place,
            parts=len(parts),
        )
        for place, cards in enumerate(parts, 1)
    ]


def _shown(others: Sequence[Card], parts: Sequence[Sequence[Card]], room: Room) -> Sequence[Card]:
    """Return the alerts that fire as before and have room in the last part."""
    if room.others != "fill":
        return ()
    last = parts[-1] if parts else ()
    return () if any(card.alert_id in room.alone for card in last) else others[: room.cards - len(last)]
