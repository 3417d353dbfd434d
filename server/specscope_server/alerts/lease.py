"""Who of several processes evaluates: a lease in the store, taken for a while and taken again before it ends.

It saves work; it is not what keeps alerts right. Two processes that both believe to hold it (their clocks
differ) write with compare-and-set, so that one of them writes nothing.
"""

from __future__ import annotations

import os
import secrets
import socket

from sqlalchemy import Connection, Engine, Table, delete, select, update

from specscope_server.alerts.pipeline.rows import inserted
from specscope_server.models import Lease
from specscope_server.store import dialects
from specscope_server.store.engine import write_transaction

LEASES: Table = Lease.__table__  # type: ignore[assignment]
EVALUATION = "alerts.evaluation"
DUE = "alerts.evaluation.due"
"""Not a lease: until when the last evaluation is fresh, and whose it was."""


def process_name() -> str:
    """Return a name that no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def take(engine: Engine, name: str, holder: str, now_ms: int, length_ms: int) -> bool:
    """Take the lease, or keep it; False while somebody else has it."""
    with engine.connect() as connection:
        row = connection.execute(select(LEASES).where(LEASES.c.name == name)).one_or_none()
    if row is not None and row.holder != holder and now_ms < row.until_ms <= now_ms + 10 * length_ms:
        return False  # a time far ahead was written by a clock that was wrong
    with write_transaction(engine) as connection:
        if row is None:
            return _insert(connection, name, holder, now_ms + length_ms)
        as_read = (
            (LEASES.c.name == name) & (LEASES.c.holder == row.holder) & (LEASES.c.until_ms == row.until_ms)
        )
        values = {"holder": holder, "until_ms": now_ms + length_ms}
        return connection.execute(update(LEASES).where(as_read).values(**values)).rowcount == 1


def give_up(engine: Engine, name: str, holder: str) -> None:
    """Let others take it at once."""
    with write_transaction(engine) as connection:
        connection.execute(delete(LEASES).where(LEASES.c.name == name, LEASES.c.holder == holder))


def note(engine: Engine, name: str, holder: str, until_ms: int) -> None:
    """Write a row whoever held it."""
    with write_transaction(engine) as connection:
        if not _insert(connection, name, holder, until_ms):
            values = {"holder": holder, "until_ms": until_ms}
            connection.execute(update(LEASES).where(LEASES.c.name == name).values(**values))


def until_ms(engine: Engine, name: str) -> int | None:
    """Return until when the row holds; None = there is none."""
    with engine.connect() as connection:
        return connection.scalar(select(LEASES.c.until_ms).where(LEASES.c.name == name))


def _insert(connection: Connection, name: str, holder: str, until: int) -> bool:
    row = dialects.insert(connection, LEASES).values(name=name, holder=holder, until_ms=until)
    return inserted(connection, row, LEASES.c.name)
