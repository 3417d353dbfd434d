"""States of alerts as rows: read, and written with compare-and-set together with their transitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import orjson
from sqlalchemy import Column, Connection, Engine, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from specscope_server.alerts.channels.notification import Card
from specscope_server.alerts.rules.reading import LabelKey, Reading
from specscope_server.alerts.states.machine import AlertState, State, Transition
from specscope_server.models import AlertState as StateRow
from specscope_server.models import AlertTransition
from specscope_server.store import dialects
from specscope_server.store.chunks import chunks
from specscope_server.store.engine import write_transaction

STATES: Table = StateRow.__table__  # type: ignore[assignment]
NOBODY = {"acked_by": None, "acked_ms": None, "ack_until_ms": None}
"""Columns of an alert that nobody looks after."""
TRANSITIONS: Table = AlertTransition.__table__  # type: ignore[assignment]
Insert: TypeAlias = sqlite.Insert | postgresql.Insert
QUIET = (State.NORMAL.value, State.RESOLVED.value)
_FIELDS = (
    "state", "since_ms", "seen_ms", "counting_since_ms", "alert_id", "fired_ms", "breach_last_ms",
    "resolved_ms", "breach_since_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """A state with what its row says besides."""

    state: AlertState
    rule: str
    labels: dict[str, str]
    revision: int
    card: Card | None
    rule_version: int

    @property
    def key(self) -> tuple[str, LabelKey]:
        """Return what readings call it."""
        return self.rule, tuple(sorted(self.labels.items()))


@dataclass(frozen=True, slots=True)
class Change:
    """What one evaluation does to one alert."""

    after: AlertState
    rule: str
    rule_version: int | None
    """None = as it was."""
    labels: dict[str, str]
    severity: str
    revision: int | None
    """That was read; None = there was no row."""
    reading: Reading | None
    card: Card | None
    transition: Transition | None


def active(connection: Connection) -> list[Kept]:
    """Return every alert that is something else than normal or resolved."""
    return [_kept(row) for row in connection.execute(select(STATES).where(STATES.c.state.not_in(QUIET)))]


def by_fingerprints(connection: Connection, wanted: Collection[str]) -> list[Kept]:
    """Return the rows of these fingerprints, as far as there are any."""
    found: list[Kept] = []
    for part in chunks(sorted(wanted)):
        query = select(STATES).where(STATES.c.fingerprint.in_(part))
        found += [_kept(row) for row in connection.execute(query)]
    return found


def write(engine: Engine, changes: Sequence[Change]) -> list[Change]:
    """Write changes in one transaction; return those that were not lost to another writer.

    A row that somebody else changed since it was read is left alone, and so is its transition: the next
    evaluation starts from what is there then. Refreshed numbers are written all at once; whether one of them
    was lost is not told.
    """
    refreshed = [change for change in changes if change.transition is None and change.revision is not None]
    with write_transaction(engine) as connection:
        written = [
            change
            for change in changes
            if (change.transition is not None or change.revision is None) and _write_one(connection, change)
        ]
        for parameters in _alike(refreshed):
            _refresh(connection, parameters)
    return [*written, *refreshed]


def _alike(changes: Iterable[Change]) -> list[list[dict[str, Any]]]:
    """Return the parameters of updates, those with the same columns together."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for change in changes:
        values = _values(change)
        read = {"of": change.after.fingerprint, "read": change.revision}
        found.setdefault(tuple(values), []).append({**values, **read})
    return list(found.values())


def _refresh(connection: Connection, parameters: list[dict[str, Any]]) -> None:
    mine = (STATES.c.fingerprint == bindparam("of")) & (STATES.c.revision == bindparam("read"))
    names = [name for name in parameters[0] if name not in ("of", "read")]
    values: dict[str, Any] = {name: bindparam(name) for name in names} | {"revision": STATES.c.revision + 1}
    connection.execute(update(STATES).where(mine).values(values), parameters)


def _write_one(connection: Connection, change: Change) -> bool:
    values = _values(change)
    if change.revision is None:
        statement = dialects.insert(connection, STATES).values(
            fingerprint=change.after.fingerprint, rule=change.rule, labels=_json(change.labels), revision=1,
            muted_by="", **values,
        )  # fmt: skip
        is_mine = inserted(connection, statement, STATES.c.fingerprint)
    else:
        mine = (STATES.c.fingerprint == change.after.fingerprint) & (STATES.c.revision == change.revision)
        done = connection.execute(update(STATES).where(mine).values(revision=change.revision + 1, **values))
        is_mine = done.rowcount == 1
    if not is_mine:
        return False
    if change.transition is not None:
        connection.execute(TRANSITIONS.insert().values(_transition(change, change.transition)))
    return True


def inserted(connection: Connection, statement: Insert, *unique: Column[Any]) -> bool:
    """Insert one row; False when there is one with the same ``unique`` columns already."""
    done = statement.on_conflict_do_nothing(index_elements=list(unique)).returning(unique[0])
    return connection.execute(done).first() is not None


def _values(change: Change) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(change.after, name) for name in _FIELDS}
    values["severity"] = change.severity
    if change.rule_version is not None:
        values["rule_version"] = change.rule_version
    values["card"] = None if change.card is None else msgspec.json.encode(change.card).decode()
    if change.reading is not None:
        values["reading"] = reading_text(change.reading)
    elif change.revision is None:
        values["reading"] = "{}"
    begins = change.transition is not None and change.transition.to_state is State.FIRING
    if begins and change.transition is not None and change.transition.from_state is not State.RECOVERING:
        values |= NOBODY
    return values


def _transition(change: Change, transition: Transition) -> dict[str, Any]:
    return {
        "fingerprint": change.after.fingerprint,
        "alert_id": transition.alert_id,
        "rule": change.rule,
        "labels": _json(change.labels),
        "severity": change.severity,
        "from_state": transition.from_state.value,
        "to_state": transition.to_state.value,
        "at_ms": transition.at_ms,
        "reason": transition.reason,
        "card": None if change.card is None else msgspec.json.encode(change.card).decode(),
    }


def reading_text(reading: Reading) -> str:
    """Return a reading as JSON; what JSON cannot say becomes text."""
    fields = {name: getattr(reading, name) for name in Reading.__slots__}
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps({**fields, "labels": dict(reading.labels)}, default=_plain, option=options).decode()


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "items") else str(value)


def _kept(row: Any) -> Kept:
    state = AlertState(
        row.fingerprint, **{**{name: getattr(row, name) for name in _FIELDS}, "state": State(row.state)}
    )
    card = None if row.card is None else msgspec.json.decode(row.card, type=Card)
    return Kept(state, row.rule, orjson.loads(row.labels), row.revision, card, row.rule_version)


def _json(labels: dict[str, str]) -> str:
    return orjson.dumps(labels, option=orjson.OPT_SORT_KEYS).decode()


def told(connection: Connection, alert_ids: Sequence[str], now_ms: int) -> None:
    """Note on transitions that a channel is being told of them."""
    for part in chunks(sorted(set(alert_ids))):
        connection.execute(
            update(TRANSITIONS)
            .where(TRANSITIONS.c.alert_id.in_(part), TRANSITIONS.c.notified_ms.is_(None))
            .values(notified_ms=now_ms)
        )
