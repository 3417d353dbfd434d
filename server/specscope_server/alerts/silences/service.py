"""Silences in the store: made, changed, ended; every change is audited."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Row, Table, func, select, update

from specscope_server.alerts import auditing
from specscope_server.alerts.pipeline.rows import STATES
from specscope_server.alerts.silences.matchers import MATCHERS
from specscope_server.alerts.silences.reach import Reach, reach_of
from specscope_server.alerts.silences.schemas import SilenceBody, SilenceItem, SilenceList, SilenceState
from specscope_server.kit.errors import Conflict, InvalidInput, NotFound
from specscope_server.kit.timeparse import parse_duration_ms, parse_instant, to_iso
from specscope_server.models import Silence
from specscope_server.store.engine import write_transaction

SILENCES: Table = Silence.__table__  # type: ignore[assignment]
LONGEST_MS = 90 * 86_400_000
MOST_LISTED = 1_000


def list_silences(connection: Connection, state: SilenceState | None, now_ms: int) -> SilenceList:
    """Return silences, those that end last first."""
    query = select(SILENCES).order_by(SILENCES.c.ends_ms.desc(), SILENCES.c.id.desc()).limit(MOST_LISTED)
    conditions = {
        SilenceState.ACTIVE: (SILENCES.c.starts_ms <= now_ms) & (SILENCES.c.ends_ms > now_ms),
        SilenceState.PENDING: (SILENCES.c.starts_ms > now_ms) & (SILENCES.c.ends_ms > now_ms),
        SilenceState.EXPIRED: SILENCES.c.ends_ms <= now_ms,
    }
    if state is not None:
        query = query.where(conditions[state])
    muted, firing = _muted(connection), _firing(connection)
    found = connection.execute(query).all()
    return SilenceList(silences=[_item(row, muted, firing, now_ms) for row in found])


def get_silence(connection: Connection, silence_id: int, now_ms: int) -> SilenceItem:
    """Return one silence. Raises `NotFound`."""
    return _item(_row(connection, silence_id), _muted(connection), _firing(connection), now_ms)


def create(engine: Engine, body: SilenceBody, actor: str, now_ms: int) -> SilenceItem:
    """Make a silence. Raises `InvalidInput`."""
    values = _values(body, actor, now_ms)
    with write_transaction(engine) as connection:
        made = connection.execute(SILENCES.insert().values(created_ms=now_ms, expired_by=None, **values))
        assert made.inserted_primary_key is not None
        number = int(made.inserted_primary_key[0])
        auditing.note(connection, now_ms, actor, "silence.create", str(number), None, values)
        return get_silence(connection, number, now_ms)


def change(engine: Engine, silence_id: int, body: SilenceBody, actor: str, now_ms: int) -> SilenceItem:
    """Write a silence anew that has not ended. Raises `InvalidInput`, `NotFound`, `Conflict`."""
    values = _values(body, actor, now_ms)
    with write_transaction(engine) as connection:
        row = _running(connection, silence_id, now_ms)
        connection.execute(update(SILENCES).where(SILENCES.c.id == silence_id).values(**values))
        before = {name: getattr(row, name) for name in values}
        auditing.note(connection, now_ms, actor, "silence.change", str(silence_id), before, values)
        return get_silence(connection, silence_id, now_ms)


def expire(engine: Engine, silence_id: int, actor: str, now_ms: int) -> SilenceItem:
    """End a silence now; it stays in the list. Raises `NotFound`, `Conflict`."""
    with write_transaction(engine) as connection:
        row = _running(connection, silence_id, now_ms)
        values = {"ends_ms": now_ms, "expired_by": actor, "starts_ms": min(row.starts_ms, now_ms)}
        connection.execute(update(SILENCES).where(SILENCES.c.id == silence_id).values(**values))
        before = {name: getattr(row, name) for name in values}
        auditing.note(connection, now_ms, actor, "silence.expire", str(silence_id), before, values)
        return get_silence(connection, silence_id, now_ms)


def _values(body: SilenceBody, actor: str, now_ms: int) -> dict[str, Any]:
    if (body.ends is None) == (body.length is None):
        raise InvalidInput("give exactly one of ends and length: a silence that never ends is forgotten")
    starts_ms = parse_instant(body.starts, now_ms, "starts")
    if body.length is not None:
        ends_ms = starts_ms + parse_duration_ms(body.length, "length")
    else:
        ends_ms = parse_instant(body.ends or "", now_ms, "ends")
    if ends_ms <= max(now_ms, starts_ms):
        raise InvalidInput(f"ends={to_iso(ends_ms)} is not after its start and now; choose a later time")
    if ends_ms - starts_ms > LONGEST_MS:
        raise InvalidInput("a silence lasts at most 90 days; turn the rule off instead")
    if not body.reason.strip():
        raise InvalidInput("reason is blank; say why, for whoever looks later")
    if all(matcher.holds({}) for matcher in body.matchers):
        raise InvalidInput(
            "these matchers hold for alerts without any labels, that is for nearly all: name a label's value"
        )
    return {
        "matchers": MATCHERS.dump_json(body.matchers).decode(),
        "owner": body.owner.strip() or actor,
        "reason": body.reason.strip(),
        "starts_ms": starts_ms,
        "ends_ms": ends_ms,
    }


def _row(connection: Connection, silence_id: int) -> Row[Any]:
    row = connection.execute(select(SILENCES).where(SILENCES.c.id == silence_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no silence {silence_id}; see /api/v1/alerts/silences")
    return row


def _running(connection: Connection, silence_id: int, now_ms: int) -> Row[Any]:
    row = _row(connection, silence_id)
    if row.ends_ms <= now_ms:
        raise Conflict(f"the silence {silence_id} ended at {to_iso(row.ends_ms)}; make another one")
    return row


def _muted(connection: Connection) -> dict[str, int]:
    """Return ``silence:ID`` → how many alerts it mutes, as the last pass found."""
    query = (
        select(STATES.c.muted_by, func.count())
        .where(STATES.c.muted_by.startswith("silence:"), STATES.c.state.in_(("firing", "recovering")))
        .group_by(STATES.c.muted_by)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _firing(connection: Connection) -> list[dict[str, str]]:
    """Return the labels of what fires, by which silences are matched."""
    query = select(STATES.c.card).where(
        STATES.c.state.in_(("firing", "recovering")), STATES.c.card.is_not(None)
    )
    return [msgspec.json.decode(text, type=_Labelled).labels for text in connection.scalars(query)]


class _Labelled(msgspec.Struct):
    """What matters here of a card."""

    labels: dict[str, str]


def _item(row: Row[Any], muted: dict[str, int], firing: list[dict[str, str]], now_ms: int) -> SilenceItem:
    matchers = MATCHERS.validate_json(row.matchers)
    state = SilenceState.EXPIRED if row.ends_ms <= now_ms else SilenceState.ACTIVE
    if state is SilenceState.ACTIVE and row.starts_ms > now_ms:
        state = SilenceState.PENDING
    reach = Reach(0, "") if state is SilenceState.EXPIRED else reach_of(matchers, firing)
    return SilenceItem(
        id=row.id,
        state=state,
        matchers=matchers,
        text=", ".join(map(str, matchers)),
        reason=row.reason,
        owner=row.owner,
        starts=to_iso(row.starts_ms),
        ends=to_iso(row.ends_ms),
        created=to_iso(row.created_ms),
        expired_by=row.expired_by,
        alerts=muted.get(f"silence:{row.id}", 0) if state is SilenceState.ACTIVE else 0,
        matches=reach.matches,
        warning=reach.warning,
    )
