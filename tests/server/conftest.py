"""The application on a migrated store (SQLite and PostgreSQL), fed as a collector does, at a fixed time."""

from __future__ import annotations

import pytest
import structlog
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, Feed

from specscope_server.app import create_app
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter


@pytest.fixture(autouse=True, scope="session")
def _plain_logs() -> None:
    """Render log entries as plain text: rich tracebacks of failing requests take seconds."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )


@pytest.fixture
def feed(store_engine: Engine) -> Feed:
    """A collector of the server gpu1:30000."""
    return Feed(IngestWriter(store_engine, lambda: NOW))


@pytest.fixture
def web(store_engine: Engine) -> Web:
    """The application on the same store; its clock says 13:00."""
    return Web(create_app(Settings(), engine=store_engine, clock=lambda: NOW))


@pytest.fixture
def lone_web(sqlite_engine: Engine) -> Web:
    """The application on an empty SQLite store, for what does not depend on the store."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))
