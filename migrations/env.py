"""How Alembic runs here: always on a live engine, in one transaction, never waiting long for a lock."""

from __future__ import annotations

import re
from typing import Any

from alembic import context
from sqlalchemy import Connection, text

from specscope_server.models import Base
from specscope_server.store.engine import WRITES

LOCK_TIMEOUT = "5s"
"""A migration that cannot get its lock gives up instead of making every reader queue behind it."""
MIGRATION_LOCK = 0x5BEC_0003

_PARTITION = re.compile(r"^(sample|distribution)_p\d{8}$")


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave daily partitions out of comparisons: the writer makes them, not a migration."""
    return not (kind == "table" and name is not None and _PARTITION.match(name))


def run(connection: Connection) -> None:
    """Run the requested migrations on the connection."""
    if connection.dialect.name == "postgresql":
        # Of two processes that upgrade at once the second waits, then finds everything done.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_name=include_name,
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,  # SQLite too: `store.engine` begins transactions itself
    )
    with context.begin_transaction():
        context.run_migrations()


with context.config.attributes["engine"].connect() as writer:
    run(writer.execution_options(**{WRITES: True}))
    writer.commit()
