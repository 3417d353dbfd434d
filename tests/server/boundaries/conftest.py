"""The application on SQLite; one test asks both stores."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, Feed

from specscope_server.app import create_app
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    """A collector of the server gpu1:30000."""
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application on the same store; its clock says 13:00."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


@pytest.fixture
def both_feed(store_engine: Engine) -> Feed:
    """The same on SQLite and PostgreSQL."""
    return Feed(IngestWriter(store_engine, lambda: NOW))


@pytest.fixture
def both_web(store_engine: Engine) -> Web:
    """The same on SQLite and PostgreSQL."""
    return Web(create_app(Settings(), engine=store_engine, clock=lambda: NOW))
