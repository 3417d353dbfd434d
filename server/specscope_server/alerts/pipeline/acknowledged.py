"""Acknowledgements that were given for a while: when it is over, nobody looks after the alert any more."""

from __future__ import annotations

from sqlalchemy import Engine, select, update

from specscope_server.alerts import auditing
from specscope_server.alerts.pipeline.rows import NOBODY, STATES
from specscope_server.alerts.states.machine import ON
from specscope_server.store.engine import write_transaction

EXPIRED = "alert.ack_expired"


def end_acknowledgements(engine: Engine, now_ms: int) -> None:
    """Take back those whose time is over, with an entry in the audit log for each."""
    is_over = (STATES.c.ack_until_ms <= now_ms) & STATES.c.state.in_([state.value for state in ON])
    with engine.connect() as connection:
        rows = connection.execute(select(STATES.c.alert_id, STATES.c.acked_by).where(is_over)).all()
    if not rows:
        return
    with write_transaction(engine) as connection:
        for row in rows:
            mine = is_over & (STATES.c.alert_id == row.alert_id)
            values = {**NOBODY, "revision": STATES.c.revision + 1}
            if connection.execute(update(STATES).where(mine).values(values)).rowcount == 1:
                owner = {"owner": row.acked_by}
                auditing.note(connection, now_ms, "specscope", EXPIRED, row.alert_id, owner, {})
