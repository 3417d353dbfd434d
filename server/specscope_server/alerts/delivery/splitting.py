"""Split what is to be told into notifications that a channel takes whole: nothing new is left out (pure).

A target takes so many alerts in one message. Whatever counts as told must have been in one: what is new and
does not fit goes into a further notification, with a ``webhook-id`` of its own. Alerts that fire as before
were told already; they fill the room that is left, and the rest of them is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    refused: Mapping[str, int] = field(default_factory=dict)
    """Alert → how often a message with it was refused: it goes into ever smaller ones, until it is alone."""
    valid_ms: int | None = None
    """After which the channel forgets an alert that it is not told of again; None = it does not."""

    def cards_for(self, card: Card) -> int:
        """Return how many alerts one message with this one holds."""
        return max(self.cards >> 2 * self.refused.get(card.alert_id, 0), 1)


def room_of(kind_name: str, config: str) -> Room:
    """Return the room of a channel's row; of one that cannot be opened, what most have."""
    try:
        kind = kind_of(kind_name)
        settings = msgspec.json.decode(config, type=dict)
        valid = settings.get(kind.valid_setting, _default_of(kind, kind.valid_setting))
        return _room(kind, settings.get(kind.most_cards_setting), valid)
    except (InvalidInput, msgspec.MsgspecError):
        return Room()


def room_in(kind: ChannelKind, config: ChannelConfig) -> Room:
    """Return the room of a channel of this kind."""
    lowered = getattr(config, kind.most_cards_setting, None)
    return _room(kind, lowered, getattr(config, kind.valid_setting, None))


def _default_of(kind: ChannelKind, setting: str) -> Any:
    return kind.config.model_fields[setting].default if setting else None


def _room(kind: ChannelKind, lowered: Any, valid_seconds: Any) -> Room:
    most = lowered if isinstance(lowered, int) and lowered > 0 else kind.most_cards
    valid_ms = valid_seconds * 1_000 if isinstance(valid_seconds, int) else None
    return Room(min(most, kind.most_cards), kind.others, valid_ms=valid_ms)


def split(whole: Notification, room: Room) -> list[Notification]:
    """Return what is sent of a notification: none when it says nothing that this channel is told of."""
    known = set(whole.known)
    new = [card for card in whole.alerts if card.alert_id not in known]
    others = [card for card in whole.alerts if card.alert_id in known]
    if room.others == "always" or (room.others == "repeat" and whole.cause == "repeat"):
        new, others = [*new, *others], []
    parts = _parts(new, room)
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


def _parts(new: Sequence[Card], room: Room) -> list[list[Card]]:
    """Return what is new, message by message; last those that nobody refused, which others may fill."""
    by_size: dict[int, list[Card]] = {}
    for card in new:
        by_size.setdefault(room.cards_for(card), []).append(card)
    return [
        cards[start : start + size]
        for size, cards in sorted(by_size.items())
        for start in range(0, len(cards), size)
    ]


def _shown(others: Sequence[Card], parts: Sequence[Sequence[Card]], room: Room) -> Sequence[Card]:
    """Return the alerts that fire as before and have room in the last part."""
    if room.others != "fill":
        return ()
    last = parts[-1] if parts else ()
    return () if any(card.alert_id in room.refused for card in last) else others[: room.cards - len(last)]
