"""One alert with its timeline, and taking it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, Row, select, update

from specscope_server.alerts import auditing
from specscope_server.alerts.auditing import AUDIT
from specscope_server.alerts.listing import item_of, rules_of
from specscope_server.alerts.pipeline.acknowledged import EXPIRED
from specscope_server.alerts.pipeline.rows import NOBODY, STATES, TRANSITIONS
from specscope_server.alerts.schemas import Acknowledgement, AlertDetail, AlertItem, TimelineItem
from specscope_server.alerts.states.machine import ON, State
from specscope_server.kit.errors import Conflict, InvalidInput, NotFound
from specscope_server.kit.timeparse import parse_duration_ms, to_iso
from specscope_server.models import Delivery, DeliveryAlert
from specscope_server.store.engine import write_transaction

MOST_ENTRIES = 1_000
ACK, UNACK = "alert.ack", "alert.unack"
VERBS = {ACK: "acknowledged", UNACK: "given back", EXPIRED: "the time of the acknowledgement is over"}
SHORTEST_MS, LONGEST_MS = 60_000, 30 * 86_400_000
_ON = tuple(state.value for state in ON)


def get_detail(connection: Connection, name: str) -> AlertDetail:
    """Return one alert by its id (also of a fire that is long over) or fingerprint. Raises `NotFound`."""
    row = _state(connection, name)
    fire = name if row.fingerprint != name else row.alert_id
    item = item_of(row, rules_of(connection, {row.rule}))
    card = None if row.card is None else orjson.loads(row.card)
    evidence = orjson.loads(row.reading).get("evidence") or {}
    is_of_row = fire == row.alert_id and row.state in (*_ON, State.RESOLVED.value)
    if fire is not None and fire == name and not is_of_row:  # the series went on since
        item, card = _earlier(connection, item, fire)
        evidence = {}
    elif card is not None and row.acked_by:
        card["acked_by"] = row.acked_by
    timeline = _states(connection, row.fingerprint, fire)
    if fire is not None:
        timeline += [*_deliveries(connection, fire), *_people(connection, fire)]
    timeline.sort(key=lambda entry: entry.at)
    return AlertDetail(alert=item, card=card, evidence=evidence, timeline=timeline[-MOST_ENTRIES:])


def _state(connection: Connection, name: str) -> Row[Any]:
    mine = (STATES.c.alert_id == name) | (STATES.c.fingerprint == name)
    row = connection.execute(select(STATES).where(mine)).first()
    if row is None:
        of_fire = select(TRANSITIONS.c.fingerprint).where(TRANSITIONS.c.alert_id == name).limit(1)
        row = connection.execute(select(STATES).where(STATES.c.fingerprint.in_(of_fire))).first()
    if row is None:
        raise NotFound(f"there is no alert {name[:60]!r}; see /api/v1/alerts and /api/v1/alerts/history")
    return row


def _earlier(
    connection: Connection, now: AlertItem, alert_id: str
) -> tuple[AlertItem, dict[str, Any] | None]:
    """Return an earlier fire of the same series as it was in the end."""
    query = select(TRANSITIONS).where(TRANSITIONS.c.alert_id == alert_id).order_by(TRANSITIONS.c.id.desc())
    last = connection.execute(query.limit(1)).one()
    card: dict[str, Any] = {} if last.card is None else orjson.loads(last.card)
    starts_ms, ends_ms = card.get("starts_ms"), card.get("ends_ms")
    [value] = card.get("values") or [{}]
    item = now.model_copy(
        update={
            "alert_id": alert_id, "state": State(last.to_state), "since": to_iso(last.at_ms),
            "severity": last.severity, "reason": last.reason, "cause": "",
            "acked_by": None, "acked": None, "acked_until": None,
            "fired": None if starts_ms is None else to_iso(starts_ms),
            "resolved": None if ends_ms is None else to_iso(ends_ms),
            "n": card.get("n"), "muted_by": "", "labels": card.get("labels") or now.labels,
            **{name: value.get(name) for name in ("value", "lower", "upper")},
        }
    )  # fmt: skip
    return item, card or None


def _states(connection: Connection, fingerprint: str, alert_id: str | None) -> list[TimelineItem]:
    """Return the changes of this fire, and the pending that led to it."""
    query = select(TRANSITIONS).where(TRANSITIONS.c.fingerprint == fingerprint)
    rows = connection.execute(query.order_by(TRANSITIONS.c.id.desc()).limit(MOST_ENTRIES)).all()
    if alert_id is not None:
        mine = [place for place, row in enumerate(rows) if row.alert_id == alert_id]
        first = max(mine, default=0)
        led = first + 1 < len(rows) and rows[first + 1].to_state == State.PENDING.value
        rows = [rows[place] for place in mine] + ([rows[first + 1]] if led else [])
    return [
        TimelineItem(at=to_iso(row.at_ms), kind="state", text=row.reason or row.to_state, status=row.to_state)
        for row in rows
    ]


def _deliveries(connection: Connection, alert_id: str) -> list[TimelineItem]:
    query = (
        select(
            Delivery.id, Delivery.channel, Delivery.status, Delivery.reason, Delivery.created_ms,
            Delivery.attempts, DeliveryAlert.status.label("told_as"),
        )
        .join(DeliveryAlert, DeliveryAlert.delivery_id == Delivery.id)
        .where(DeliveryAlert.alert_id == alert_id)
        .order_by(Delivery.id.desc())
        .limit(MOST_ENTRIES)
    )  # fmt: skip
    return [
        TimelineItem(
            at=to_iso(row.created_ms), kind="delivery", status=row.status, delivery_id=row.id,
            text=f"{row.channel}: told as {row.told_as} ({row.reason}), {row.attempts} attempts",
        )
        for row in connection.execute(query)
    ]  # fmt: skip


def _people(connection: Connection, alert_id: str) -> list[TimelineItem]:
    query = select(AUDIT).where(AUDIT.c.target == alert_id, AUDIT.c.action.in_((ACK, UNACK, EXPIRED)))
    entries = []
    for row in connection.execute(query.order_by(AUDIT.c.id)):
        after = orjson.loads(row.after or "{}")
        note = f": {after['note']}" if after.get("note") else ""
        verb = VERBS[row.action]
        until = f" until {after['until']}" if after.get("until") else ""
        text = f"{verb} by {after.get('owner') or row.actor}{until}{note}"
        if row.action == EXPIRED:
            text = f"{orjson.loads(row.before or '{}').get('owner')} does not look after it any more: {verb}"
        entries.append(TimelineItem(at=to_iso(row.at_ms), kind="person", text=text, status=verb))
    return entries


def acknowledge(
    engine: Engine, alert_id: str, body: Acknowledgement, actor: str, now_ms: int
) -> AlertDetail:  # fmt: skip
    """Note who looks after an alert that fires, and until when.

    Raises `NotFound`, `Conflict` if it does not fire, and `InvalidInput`.
    """
    owner = body.owner.strip() or actor
    until_ms = _until(body, now_ms)
    values = {"acked_by": owner, "acked_ms": now_ms, "ack_until_ms": until_ms}
    said = {"owner": owner, "note": body.note.strip()}
    said |= {} if until_ms is None else {"until": to_iso(until_ms)}
    return _take(engine, alert_id, values, ACK, said, actor, now_ms)


def _until(body: Acknowledgement, now_ms: int) -> int | None:
    if body.for_ is None:
        return None
    length_ms = parse_duration_ms(body.for_, "for")
    if not SHORTEST_MS <= length_ms <= LONGEST_MS:
        raise InvalidInput(
            f"for={body.for_[:20]} is not between 1m and 30d; leave it out to take it until its end"
        )
    return now_ms + length_ms


def give_back(engine: Engine, alert_id: str, actor: str, now_ms: int) -> AlertDetail:
    """Note that nobody looks after it any more. Raises as `acknowledge` does."""
    return _take(engine, alert_id, NOBODY, UNACK, {}, actor, now_ms)


def _take(
    engine: Engine, alert_id: str, values: Mapping[str, Any], action: str, said: dict[str, str], actor: str,
    now_ms: int,
) -> AlertDetail:  # fmt: skip
    mine = (STATES.c.alert_id == alert_id) & STATES.c.state.in_(_ON)
    with write_transaction(engine) as connection:
        before = connection.scalar(select(STATES.c.acked_by).where(mine))
        grown = {**values, "revision": STATES.c.revision + 1}
        if connection.execute(update(STATES).where(mine).values(grown)).rowcount != 1:
            detail = get_detail(connection, alert_id)
            raise Conflict(f"the alert {alert_id} is {detail.alert.state}: only one that fires can be taken")
        auditing.note(connection, now_ms, actor, action, alert_id, {"owner": before}, said)
        return get_detail(connection, alert_id)
