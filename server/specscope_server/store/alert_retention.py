"""Remove the history of alerts that is older than it need be kept; what fires or waits stays, however old."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, Table, and_, delete, select

from specscope_server.models import (
    AlertGroup,
    AlertState,
    AlertTransition,
    Audit,
    Base,
    Channel,
    Delivery,
    Silence,
)
from specscope_server.store.engine import write_transaction

ROWS_PER_STEP = 5_000
QUIET = ("normal", "resolved", "no_data", "error")
"""States in which nothing fires or is about to. A row that goes too early is made anew when it is needed."""


@dataclass(frozen=True, slots=True)
class Old:
    """Rows of one table that may go."""

    table: Table
    condition: ColumnElement[bool]


def old_rows(before_ms: int) -> list[Old]:
    """Return what of each table is over since before this time."""
    tables = Base.metadata.tables
    is_over = AlertState.state.in_(QUIET)
    is_sent = Delivery.status.not_in(("pending", "claimed"))
    fires = select(AlertState.alert_id).where(~is_over, AlertState.alert_id.is_not(None))
    of_fire = AlertTransition.alert_id.is_not(None) & AlertTransition.alert_id.in_(fires)
    is_idle = AlertGroup.next_flush_ms.is_(None) & (AlertGroup.sent_firing == "{}")
    has_channel = select(Channel.id).where(Channel.name == AlertGroup.channel).exists()
    # One of which nobody was ever told has no time: what it waited for is over.
    is_old = AlertGroup.last_sent_ms.is_(None) | (AlertGroup.last_sent_ms < before_ms)
    return [
        Old(tables["alert_transition"], and_(AlertTransition.at_ms < before_ms, ~of_fire)),
        Old(tables["alert_state"], and_(is_over, AlertState.since_ms < before_ms)),
        Old(tables["alert_group"], and_(is_idle | ~has_channel, is_old)),
        Old(tables["delivery"], and_(is_sent, Delivery.created_ms < before_ms)),
        Old(tables["silence"], Silence.ends_ms < before_ms),
        Old(tables["audit"], Audit.at_ms < before_ms),
    ]


def delete_old_alerts(engine: Engine, before_ms: int) -> Iterator[tuple[str, int]]:
    """Delete step by step; yield (table, rows) after each transaction. Attempts go with their deliveries."""
    for old in old_rows(before_ms):
        while rows := _delete_step(engine, old):
            yield old.table.name, rows
            if rows < ROWS_PER_STEP:
                break


def _delete_step(engine: Engine, old: Old) -> int:
    first = select(old.table.c.id).where(old.condition).order_by(old.table.c.id).limit(ROWS_PER_STEP)
    with engine.connect() as connection:
        ids = connection.scalars(first).all()
    if not ids:
        return 0
    with write_transaction(engine) as connection:
        # Asked again: since it was read it may have begun to fire.
        return connection.execute(delete(old.table).where(old.table.c.id.in_(ids), old.condition)).rowcount
