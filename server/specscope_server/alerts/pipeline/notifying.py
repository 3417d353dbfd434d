"""From alerts that fire to the outbox: inhibit → silence → group → dedup → outbox, read top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Engine, bindparam, func, select, update

from specscope_server.alerts.channels.notification import Card
from specscope_server.alerts.delivery.splitting import Room, room_of
from specscope_server.alerts.pipeline import outbox
from specscope_server.alerts.pipeline.acknowledged import end_acknowledgements
from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.pipeline.dedup import Decision, Told, decide
from specscope_server.alerts.pipeline.given_up import GivenUp, given_up
from specscope_server.alerts.pipeline.group import EVERYTHING, Group, Route, grouped, routes_of, told_by
from specscope_server.alerts.pipeline.inhibit import inhibited
from specscope_server.alerts.pipeline.outbox import KeptGroup
from specscope_server.alerts.pipeline.regroup import moves, records, stay, waiting
from specscope_server.alerts.pipeline.rows import STATES, TRANSITIONS
from specscope_server.alerts.pipeline.silence import ActiveSilence, silenced
from specscope_server.alerts.rules.reading import Cause
from specscope_server.alerts.rules.schema import Inhibition
from specscope_server.alerts.silences.matchers import MATCHERS
from specscope_server.alerts.states.machine import ON, State
from specscope_server.models import Channel, Silence
from specscope_server.store.chunks import chunks
from specscope_server.store.engine import write_transaction

GROUPS_PER_TRANSACTION = 50
GONE = "the alert is no longer known"


@dataclass(frozen=True, slots=True)
class Routing:
    """What says who is told of what."""

    routes: Sequence[Route] = ()
    public_url: str = ""


@dataclass(slots=True)
class Notified:
    """What one pass did."""

    firing: int = 0
    muted: int = 0
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    """(channel, group) → why it was told, or not told."""
    deliveries: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Known:
    """What is read at the beginning of a pass."""

    kept: Mapping[tuple[str, str], KeptGroup]
    alerts: Sequence[Alert]
    silences: Sequence[ActiveSilence]
    channels: Mapping[str, Room]
    """Name → what one notification to it may hold."""
    given_up: GivenUp


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that changes something."""

    group: Group
    known: KeptGroup | None
    decision: Decision


def notify_once(
    engine: Engine, routing: Routing, inhibitions: Mapping[str, Sequence[Inhibition]], now_ms: int
) -> Notified:
    """Decide for every group of every channel, and put what is to be told into the outbox."""
    end_acknowledgements(engine, now_ms)
    with engine.connect() as connection:
        known = _read(connection, now_ms)
    muted = {**silenced(known.alerts, known.silences), **inhibited(known.alerts, inhibitions)}
    _note_muted(engine, known.alerts, muted)
    groups = _groups(known, muted, routing.routes)
    done = Notified(len(known.alerts), len(muted))
    regrouped = _regroup(engine, groups, known)
    if regrouped is None:
        return done
    known = regrouped
    decided = list(_decisions(groups, known, now_ms, done))
    with engine.connect() as connection:
        ids = {alert_id for each in decided for alert_id in each.decision.over}
        over = ended_cards(connection, sorted(ids), now_ms)
    for start in range(0, len(decided), GROUPS_PER_TRANSACTION):
        some = decided[start : start + GROUPS_PER_TRANSACTION]
        _write(engine, some, over, known.channels, now_ms, routing, done)
    return done


def _read(connection: Connection, now_ms: int) -> Known:
    kept = outbox.kept_groups(connection)  # before the alerts: what was told of must be among them
    alerts = firing_alerts(connection)
    told: dict[str, list[str]] = {}
    for group in kept.values():
        told.setdefault(group.channel, []).extend(group.told.firing)
    silences = active_silences(connection, now_ms)
    rooms = usable_channels(connection)
    failed = given_up(connection, told, rooms, now_ms)
    channels = {name: replace(room, refused=failed.refused.get(name, {})) for name, room in rooms.items()}
    return Known(kept, alerts, silences, channels, failed)


def _groups(
    known: Known, muted: Mapping[str, str], routes: Sequence[Route]
) -> dict[tuple[str, str], Group]:  # fmt: skip
    """Return the groups of alerts that are not muted, and those of which something was told before."""
    loud = [alert for alert in known.alerts if alert.fingerprint not in muted]
    groups = grouped(loud, routes, known.channels)
    for key, kept in known.kept.items():
        is_done = kept.is_idle and key not in known.given_up.unended
        if kept.channel in known.channels and key not in groups and not is_done:
            groups[key] = Group(kept.channel, kept.key, kept.labels, _route_of(kept, routes))
    return groups


def _regroup(engine: Engine, groups: dict[tuple[str, str], Group], known: Known) -> Known | None:
    """Let alerts that are in other groups now take along what was told of them; return what is known then.

    None: another process decided meanwhile. It all waits for the next pass.
    """
    wanted = list(moves(groups, known.kept))
    if not wanted:
        return known
    with write_transaction(engine) as connection:
        not_yet = waiting(connection, wanted)
        stay(groups, not_yet, known.kept)
        found = records([move for move in wanted if move not in not_yet], known.kept)
        for place, told in found.told.items():
            kept = known.kept.get(place)
            decision = Decision(f"{found.moved[place]} in another group now", told)
            group = groups[place] if kept is None else Group(*place, kept.labels, EVERYTHING)
            if not outbox.keep_group(connection, group, kept, decision):
                connection.rollback()
                return None
    with engine.connect() as connection:
        return replace(known, kept=outbox.kept_groups(connection))


def _decisions(
    groups: Mapping[tuple[str, str], Group], known: Known, now_ms: int, done: Notified
) -> Iterator[Decided]:
    """Yield the decisions that change what a channel knows, or when it is looked at again."""
    on = {alert.alert_id: alert for alert in known.alerts}
    for key, group in groups.items():
        kept = known.kept.get(key)
        told = Told() if kept is None else kept.told
        valid_ms = known.channels[group.channel].valid_ms
        failures = known.given_up.of(*key)
        decision = decide(told, group.alerts, on, now_ms, group.route, failures, valid_ms)
        done.reasons[key] = decision.reason
        if kept is None or decision.told != told or decision.cause is not None:
            yield Decided(group, kept, decision)


def _write(
    engine: Engine, decided: Sequence[Decided], over: Mapping[str, Card], rooms: Mapping[str, Room],
    now_ms: int, routing: Routing, done: Notified,
) -> None:  # fmt: skip
    """Write some groups; each is left alone that another process decided about meanwhile."""
    with write_transaction(engine) as connection:
        found = [
            outbox.keep(
                connection, each.group, each.known, each.decision,
                outbox.notification_of(each.group, each.decision, over, now_ms, routing.public_url),
                rooms[each.group.channel], now_ms,
            )
            for each in decided
        ]  # fmt: skip
    done.deliveries += [delivery for some in found for delivery in some]


def firing_alerts(connection: Connection) -> list[Alert]:
    """Return every alert that fires, with its card."""
    on = STATES.c.state.in_([state.value for state in ON]) & STATES.c.card.is_not(None)
    return [_alert(row) for row in connection.execute(select(STATES).where(on))]


def _alert(row: Any) -> Alert:
    card = msgspec.json.decode(row.card, type=Card)
    cause = orjson.loads(row.reading).get("cause", "")
    return Alert(
        fingerprint=row.fingerprint,
        alert_id=row.alert_id,
        rule=row.rule,
        labels=card.labels,
        fired_ms=row.fired_ms or row.since_ms,
        card=card,
        is_idle=cause == Cause.IDLE,
        acked_by=row.acked_by or "",
        muted_by=row.muted_by,
    )


def active_silences(connection: Connection, now_ms: int) -> list[ActiveSilence]:
    """Return the silences that hold now."""
    query = select(Silence.id, Silence.matchers).where(Silence.starts_ms <= now_ms, Silence.ends_ms > now_ms)
    return [
        ActiveSilence(row.id, MATCHERS.validate_json(row.matchers))
        for row in connection.execute(query.order_by(Silence.id))
    ]


def usable_channels(connection: Connection) -> dict[str, Room]:
    """Return the names of channels that are told of alerts, and what a notification to each may hold."""
    query = select(Channel.name, Channel.kind, Channel.config).where(Channel.enabled).order_by(Channel.name)
    return {row.name: room_of(row.kind, row.config) for row in connection.execute(query)}


def ended_cards(connection: Connection, alert_ids: Sequence[str], now_ms: int) -> dict[str, Card]:
    """Return alert id → its card as it was when it was over."""
    cards: dict[str, Card] = {}
    for part in chunks(sorted(alert_ids)):
        last = (
            select(func.max(TRANSITIONS.c.id))
            .where(TRANSITIONS.c.alert_id.in_(part), TRANSITIONS.c.card.is_not(None))
            .group_by(TRANSITIONS.c.alert_id)
        )
        query = select(TRANSITIONS.c.card, TRANSITIONS.c.to_state).where(TRANSITIONS.c.id.in_(last))
        for row in connection.execute(query):
            card = msgspec.json.decode(row.card, type=Card)
            if row.to_state != State.RESOLVED.value:  # its end was not kept: say so, rather than nothing
                card = msgspec.structs.replace(
                    card, status="resolved", ends_ms=max(now_ms, card.starts_ms), reason=GONE
                )
            cards[card.alert_id] = card
    return cards


def _route_of(known: KeptGroup, routes: Sequence[Route]) -> Route:
    """Return the route under which a group goes on whose alerts are not loud any more."""
    for route in routes_of(known.labels, routes):
        if known.channel in told_by(route, [known.channel]):
            return route
    return EVERYTHING


def _note_muted(engine: Engine, alerts: Sequence[Alert], muted: Mapping[str, str]) -> None:
    """Keep on each alert why nobody is told of it: for people, decisions work it out anew."""
    changed = [
        {"of": alert.fingerprint, "why": muted.get(alert.fingerprint, "")}
        for alert in alerts
        if muted.get(alert.fingerprint, "") != alert.muted_by
    ]
    if changed:
        statement = update(STATES).where(STATES.c.fingerprint == bindparam("of"))
        with write_transaction(engine) as connection:
            connection.execute(statement.values(muted_by=bindparam("why")), changed)
