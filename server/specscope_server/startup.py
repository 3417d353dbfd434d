"""What happens when the server starts: the store is brought up to date, or the start is refused with the remedy."""

from __future__ import annotations

import structlog
from sqlalchemy import Engine

from specscope_server.kit.errors import Unavailable
from specscope_server.settings import Settings
from specscope_server.store import migrate

log = structlog.get_logger(__name__)


def prepare_store(engine: Engine, settings: Settings) -> None:
    """Upgrade an embedded SQLite file; upgrade PostgreSQL only when told to, since others may share it.

    Raises `Unavailable` when the tables are not at this version's revision and may not be upgraded.
    """
    if migrate.is_current(engine):
        return
    if engine.dialect.name != "sqlite" and not settings.migrate:
        raise Unavailable(
            f"the database is at revision {migrate.current(engine) or 'none'} and this version needs "
            f"{migrate.head(engine)}: run specscope db upgrade, or start with --migrate"
        )
    log.info("upgrading_database", before=migrate.current(engine), after=migrate.head(engine))
    migrate.upgrade(engine)
