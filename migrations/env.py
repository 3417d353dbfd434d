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

_PARTITION = re.compile(r"^(sample|distribution)_p\d{8}$")


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave daily partitions out of comparisons: the writer makes them, not a migration."""
    return not (kind == "table" and name is not None and _PARTITION.match(name))


def run(connection: Connection) -> None:
    """Run the requested migrations on the connection."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_name=include_name,
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,  # SQLite too: `store.engine` begins transactions itself
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        context.run_migrations()


with context.config.attributes["engine"].connect() as writer:
    run(writer.execution_options(**{WRITES: True}))
    writer.commit()
