"""What was told under a group's former name stays told when grouping changes while alerts fire.

The record of what a channel was told lies with the group. An alert that is in another group of the same
channel now takes its part of the record along: it is not told again at once, and its end is told once, by the
group that it is in then. While a notification about it still waits under the former name it stays there: two
queues keep no order between them, and an end could overtake its fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, select

from specscope_server.alerts.delivery.outbox import WAITING
from specscope_server.alerts.pipeline.dedup import Told
from specscope_server.alerts.pipeline.group import Group
from specscope_server.alerts.pipeline.outbox import KeptGroup
from specscope_server.models import Delivery, DeliveryAlert
from specscope_server.store.chunks import chunks

Place = tuple[str, str]
"""(channel, key of a group)."""


@dataclass(frozen=True, slots=True)
class Move:
    """One alert that was told under another name than it has now."""

    alert_id: str
    source: Place
    target: Place | None
    """None: every group that it is in now was told of it, too."""


@dataclass(slots=True)
class Records:
    """What channels know of groups that change by moves, and how many alerts came or went."""

    told: dict[Place, Told] = field(default_factory=dict)
    moved: dict[Place, int] = field(default_factory=dict)


def moves(groups: Mapping[Place, Group], kept: Mapping[Place, KeptGroup]) -> Iterator[Move]:
    """Yield the alerts that are in other groups now than those that channels were told of (pure)."""
    homes: dict[tuple[str, str], list[Place]] = {}
    for place, group in groups.items():
        for alert in group.alerts:
            homes.setdefault((group.channel, alert.alert_id), []).append(place)
    for place, known in kept.items():
        for alert_id in sorted(known.told.firing):
            now = homes.get((known.channel, alert_id), [])
            if now and place not in now:
                untold = [home for home in now if home not in kept or alert_id not in kept[home].told.firing]
                yield Move(alert_id, place, untold[0] if untold else None)


def waiting(connection: Connection, wanted: list[Move]) -> set[Move]:
    """Return those of the moves whose alert is named by a notification that waits under the former name."""
    found: set[tuple[str, str, str]] = set()
    for part in chunks(sorted({move.alert_id for move in wanted})):
        query = (
            select(Delivery.channel, Delivery.group_key, DeliveryAlert.alert_id)
            .join(DeliveryAlert, DeliveryAlert.delivery_id == Delivery.id)
            .where(Delivery.status.in_(WAITING), DeliveryAlert.alert_id.in_(part))
        )
        found |= {(row.channel, row.group_key, row.alert_id) for row in connection.execute(query)}
    return {move for move in wanted if (*move.source, move.alert_id) in found}


def stay(groups: dict[Place, Group], moves: set[Move], kept: Mapping[Place, KeptGroup]) -> None:
    """Leave alerts that cannot move yet out of the groups that they are in now."""
    for move in moves:
        if move.target is None or move.target not in groups:
            continue
        group = groups[move.target]
        group.alerts = [alert for alert in group.alerts if alert.alert_id != move.alert_id]
        if not group.alerts and move.target not in kept:
            del groups[move.target]


def records(moves: list[Move], kept: Mapping[Place, KeptGroup]) -> Records:
    """Return what channels know afterwards (pure)."""
    found = Records()

    def told(place: Place) -> Told:
        known = kept.get(place)
        return found.told.setdefault(place, Told() if known is None else known.told)

    for move in moves:
        source = told(move.source)
        if move.target is not None:
            found.told[move.target] = _with(told(move.target), source, move.alert_id)
            found.moved[move.target] = found.moved.get(move.target, 0) + 1
        found.told[move.source] = _without(source, move.alert_id)
        found.moved[move.source] = found.moved.get(move.source, 0) + 1
    return found


def _with(told: Told, source: Told, alert_id: str) -> Told:
    severity = {alert_id: source.severity[alert_id]} if alert_id in source.severity else {}
    # The older time: a channel that forgets must hear of each again before it does. A group of which nothing
    # is told any more, as its name was used before, has no say.
    known = [each for each in (told, source) if each.firing]
    times = [each.last_sent_ms for each in known if each.last_sent_ms is not None]
    return replace(
        told, firing={**told.firing, alert_id: source.firing[alert_id]},
        severity={**told.severity, **severity}, last_sent_ms=min(times, default=None),
    )  # fmt: skip


def _without(told: Told, alert_id: str) -> Told:
    return replace(
        told,
        firing={key: by for key, by in told.firing.items() if key != alert_id},
        severity={key: word for key, word in told.severity.items() if key != alert_id},
    )
