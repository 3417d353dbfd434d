"""Migrations: up, down and up again on both engines; nothing left to autogenerate."""

from __future__ import annotations

from alembic import command
from sqlalchemy import Engine

from specscope_server.store import migrate


def test_the_models_have_nothing_that_the_migrations_lack(store_engine: Engine) -> None:
    assert migrate.is_current(store_engine)
    command.check(migrate.configuration(store_engine))
