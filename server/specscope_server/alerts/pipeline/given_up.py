"""What of earlier deliveries came to nothing: fires and ends that a channel was to be told of, and was not.

A fire that was given up is told anew while it lasts, an end until it got there: who was paged is told that it
is over. A receiver that refuses is asked ever less often, and in ever smaller messages: an alert that it
cannot take holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Exists, case, func, select

from specscope_server.alerts.delivery.answers import OF_CHANNEL, OF_MAILBOX
from specscope_server.alerts.delivery.outbox import (
    EXPIRED,
    FAILED,
    SENT,
    WAITING,
    known_and_told,
    may_be_taken,
)
from specscope_server.alerts.pipeline.dedup import Failures
from specscope_server.models import Channel, Delivery, DeliveryAlert, DeliveryAttempt
from specscope_server.store.chunks import chunks

FIRST_HOLD_MS = 60_000
LONGEST_HOLD_MS = 900_000
MOST_ENDS = 100
"""Tries to tell of one end: about a day. Then it is no news."""
LOOKED_BACK_MS = 2 * 86_400_000
FIRING, RESOLVED = "firing", "resolved"


def hold_ms(times: int) -> int:
    """Return how long nothing is tried after ``times`` ≥ 1 refusals."""
    return min(FIRST_HOLD_MS << min(times - 1, 20), LONGEST_HOLD_MS)


@dataclass(frozen=True, slots=True)
class Failed:
    """Deliveries of one fire, or of one end, to one channel that were given up."""

    channel: str
    group_key: str
    """Of the last one."""
    alert_id: str
    status: str
    times: int
    last_ms: int
    refused: int
    """Times that the message was refused, and not the channel's address or credentials."""

    def is_held(self, now_ms: int, changed_ms: int) -> bool:
        """Tell whether to wait still. A channel that was changed since is tried at once, and so is one whose
        last failure lies ahead: the clock was set back.
        """
        return changed_ms <= self.last_ms <= now_ms < self.last_ms + hold_ms(self.times)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """By channel; ``unended`` by (channel, key of the group)."""

    lost: Mapping[str, set[str]] = field(default_factory=dict)
    refused: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Channel → alert → how often a message with it was refused."""
    held: Mapping[str, set[str]] = field(default_factory=dict)
    unended: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)

    def of(self, channel: str, group_key: str) -> Failures:
        """Return what matters for one group of a channel."""
        return Failures(
            self.lost.get(channel, ()),
            self.held.get(channel, ()),
            self.unended.get((channel, group_key), ()),
        )


def given_up(
    connection: Connection, told: Mapping[str, Sequence[str]], channels: Iterable[str], now_ms: int
) -> GivenUp:
    """Return it. ``told``: channel → alerts that it was to be told of as firing."""
    usable = set(channels)
    failed = [each for each in _failed(connection, now_ms) if each.channel in usable]
    changed = {
        row.name: row.updated_ms for row in connection.execute(select(Channel.name, Channel.updated_ms))
    }
    held = [each for each in failed if each.is_held(now_ms, changed.get(each.channel, 0))]
    free = [each for each in failed if each.status == RESOLVED and each not in held]
    return GivenUp(
        {channel: lost_ids(connection, channel, ids) for channel, ids in told.items()},
        _refused(failed),
        _by_channel(each for each in held if each.status == FIRING),
        _unended(connection, [each for each in free if each.times < MOST_ENDS]),
    )


def _failed(connection: Connection, now_ms: int) -> list[Failed]:
    """Return what was given up lately: fires that were refused, and all ends."""
    is_end = DeliveryAlert.status == RESOLVED
    query = (
        select(
            Delivery.channel, DeliveryAlert.alert_id, DeliveryAlert.status,
            func.max(Delivery.group_key).label("group_key"), func.count().label("times"),
            func.max(Delivery.finished_ms).label("last_ms"),
            func.sum(case((_is_refused(), 1), else_=0)).label("refused"),
        )
        .join(DeliveryAlert, DeliveryAlert.delivery_id == Delivery.id)
        .where(
            (Delivery.status == FAILED) | ((Delivery.status == EXPIRED) & is_end),
            Delivery.next_attempt_ms > now_ms - LOOKED_BACK_MS,
            Delivery.finished_ms.is_not(None),
        )
        .group_by(Delivery.channel, DeliveryAlert.alert_id, DeliveryAlert.status)
    )  # fmt: skip
    return [
        Failed(row.channel, row.group_key, row.alert_id, row.status, row.times, row.last_ms, int(row.refused))
        for row in connection.execute(query)
    ]


def _is_refused() -> Exists:
    """Return whether a delivery was refused for what it says."""
    code = func.coalesce(DeliveryAttempt.status_code, 0)
    return (
        select(DeliveryAttempt.id)
        .where(
            DeliveryAttempt.delivery_id == Delivery.id,
            DeliveryAttempt.outcome == "permanent",
            code.not_in((*OF_CHANNEL, *OF_MAILBOX)) & ~code.between(300, 399),
        )
        .exists()
    )


def _refused(failed: Iterable[Failed]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in failed:
        if each.refused:
            found.setdefault(each.channel, {})[each.alert_id] = each.refused
    return found


def _by_channel(failed: Iterable[Failed]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in failed:
        found.setdefault(each.channel, set()).add(each.alert_id)
    return found


def _unended(connection: Connection, failed: Sequence[Failed]) -> dict[tuple[str, str], set[str]]:
    """Return the alerts that a channel believes to fire although their end was sent, and given up."""
    by_channel = _by_channel(failed)
    open_ids = {channel: _still_open(connection, channel, sorted(ids)) for channel, ids in by_channel.items()}
    found: dict[tuple[str, str], set[str]] = {}
    for each in failed:
        if each.alert_id in open_ids[each.channel]:
            found.setdefault((each.channel, each.group_key), set()).add(each.alert_id)
    return found


def _still_open(connection: Connection, channel: str, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for part in chunks(ids):
        _, told = known_and_told(connection, channel, list(part))
        ended = (
            select(DeliveryAlert.alert_id)
            .join(Delivery, Delivery.id == DeliveryAlert.delivery_id)
            .where(
                Delivery.channel == channel,
                DeliveryAlert.alert_id.in_(part),
                DeliveryAlert.status == RESOLVED,
                Delivery.status.in_((SENT, *WAITING)) | may_be_taken(),
            )
        )
        found |= told - set(connection.scalars(ended))
    return found


def lost_ids(connection: Connection, channel: str, alert_ids: Sequence[str]) -> set[str]:
    """Return those of the alerts whose fire was given up before this channel could be told of it."""
    lost: set[str] = set()
    for part in chunks(sorted(alert_ids)):
        known, told = known_and_told(connection, channel, list(part))
        unsure = sorted(known - told)
        waits = (
            select(DeliveryAlert.alert_id)
            .join(Delivery, Delivery.id == DeliveryAlert.delivery_id)
            .where(
                Delivery.channel == channel,
                Delivery.status.in_(WAITING),
                DeliveryAlert.status == FIRING,
                DeliveryAlert.alert_id.in_(unsure),
            )
        )
        lost |= set(unsure) - set(connection.scalars(waits))
    return lost
