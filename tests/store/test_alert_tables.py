"""The tables of alerts go down and up again with rows in them, and the rest of the store stays."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Boolean, Engine, LargeBinary, Table, Text
from sqlalchemy.exc import IntegrityError
from tests.store.conftest import batch, level, rows

from specscope_server.models import Base
from specscope_server.store import migrate
from specscope_server.store.engine import write_transaction
from specscope_server.store.ingest import IngestWriter

TABLES = (
    "alert_rule",
    "alert_rule_version",
    "silence",
    "audit",
    "alert_state",
    "alert_transition",
    "alert_group",
    "lease",
    "channel",
    "delivery",
    "delivery_alert",
    "delivery_attempt",
)


def test_down_and_up_again_with_rows_in(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(), sequence=2))
    fill(store_engine)
    before = rows(store_engine, "latest")
    migrate.downgrade(store_engine, "0005")
    assert rows(store_engine, "latest") == before
    migrate.upgrade(store_engine)
    assert not any(rows(store_engine, name) for name in TABLES)
    fill(store_engine)
    assert rows(store_engine, "latest") == before


def test_alerts_that_are_on_since_before_an_upgrade_have_a_beginning(store_engine: Engine) -> None:
    """From then on their baselines stand still."""
    migrate.downgrade(store_engine, "0006")
    columns = (
        "fingerprint, rule, labels, state, reading, severity, muted_by, rule_version, since_ms, seen_ms, "
        "revision, fired_ms"
    )
    with write_transaction(store_engine) as connection:
        for state, fired_ms in (("firing", 5), ("recovering", 6), ("pending", 3), ("resolved", 4)):
            values = f"'{state}', 'r', '{{}}', '{state}', '{{}}', 'info', '', 1, 7, 9, 1, {fired_ms}"
            connection.exec_driver_sql(f"INSERT INTO alert_state ({columns}) VALUES ({values})")
    migrate.upgrade(store_engine)
    found = rows(store_engine, "alert_state", "state", "breach_since_ms")
    assert dict(found) == {"firing": 5, "recovering": 6, "pending": 7, "resolved": None}


@pytest.mark.parametrize("name", ["alert_state", "alert_group", "delivery", "channel", "alert_rule"])
def test_what_must_be_unique_is(store_engine: Engine, name: str) -> None:
    fill(store_engine)
    table = Base.metadata.tables[name]
    with write_transaction(store_engine) as connection:
        with pytest.raises(IntegrityError):
            connection.execute(table.insert().values({**_row(table), "id": 2}))
        connection.rollback()


def test_deliveries_take_their_attempts_with_them(store_engine: Engine) -> None:
    fill(store_engine)
    with write_transaction(store_engine) as connection:
        connection.execute(Base.metadata.tables["delivery"].delete())
    assert not rows(store_engine, "delivery_attempt")
    assert not rows(store_engine, "delivery_alert")


def fill(engine: Engine) -> None:
    """Put one row into each table."""
    with write_transaction(engine) as connection:
        for name in TABLES:
            table = Base.metadata.tables[name]
            connection.execute(table.insert().values(_row(table)))


def _row(table: Table) -> dict[str, Any]:
    return {column.name: _value(column.type) for column in table.columns}


def _value(kind: Any) -> Any:
    if isinstance(kind, Boolean):
        return True
    return "{}" if isinstance(kind, Text) else b"x" if isinstance(kind, LargeBinary) else 1
