"""Fixtures of real, migrated databases: SQLite and PostgreSQL, one fresh copy for each test.

Migrations run once per session and engine into a template; each test gets a copy (of the file, or by CREATE
DATABASE … TEMPLATE). PostgreSQL comes from `SPECSCOPE_TEST_POSTGRES_URL`, else a server of ours is started.
Where neither can be had the tests are skipped with the reason, and fail in CI (environment variable `CI`).
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url
from tests.support.postgresql import PostgreSQLMissingError, running_server

from specscope_server.store.engine import create_store_engine
from specscope_server.store.migrate import upgrade

_numbers = itertools.count(1)


def _unavailable(reason: str) -> None:
    message = (
        f"no PostgreSQL for the tests: {reason} (set SPECSCOPE_TEST_POSTGRES_URL to one that may be used)"
    )
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a PostgreSQL server's maintenance database, with the right to create databases."""
    given = os.environ.get("SPECSCOPE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with ExitStack() as stack:
        try:
            url = stack.enter_context(running_server())
        except (PostgreSQLMissingError, ModuleNotFoundError) as error:
            _unavailable(str(error))
        yield url


@contextmanager
def postgres_database(server_url: str, template: str | None = None) -> Iterator[str]:
    """Create a database (a copy of ``template``), yield its URL, drop it."""
    name = f"specscope_test_{os.getpid()}_{next(_numbers)}"
    url = with_driver(server_url)
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    source = f" TEMPLATE {template}" if template else ""
    try:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}{source}")
        yield make_url(url).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.dispose()


def with_driver(url: str) -> str:
    """Return the URL with the driver named, as `create_engine` needs it."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """Name of a migrated, empty database to copy."""
    with postgres_database(postgres_server) as url:
        engine = create_store_engine(url)
        upgrade(engine)
        engine.dispose()  # a database with connections cannot be a template
        yield make_url(url).database or ""


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of a migrated, empty database to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.sqlite3"
    engine = create_store_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()  # the last connection moves the write-ahead log into the file
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """URL of a migrated, empty SQLite file of this test's own."""
    path = tmp_path / "specscope.sqlite3"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """URL of a migrated, empty PostgreSQL database of this test's own."""
    with postgres_database(postgres_server, postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> str:
    """URL of a migrated, empty database; the test runs once on each engine."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """Open the database and close every connection afterwards."""
    engine = create_store_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@pytest.fixture
def store_engine(store_url: str) -> Iterator[Engine]:
    """Engine on a migrated, empty database; the test runs once on each engine."""
    with opened(store_url) as engine:
        yield engine


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """Engine on a migrated, empty SQLite file."""
    with opened(sqlite_url) as engine:
        yield engine


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    """Engine on a migrated, empty PostgreSQL database."""
    with opened(postgres_url) as engine:
        yield engine
