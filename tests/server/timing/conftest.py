"""What is said about time does not depend on the store: SQLite alone, where a module asks for no more."""

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
    """A collector of gpu1:30000."""
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application at 13:00."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))
