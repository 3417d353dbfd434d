"""Migrations run up, down and up again on both engines, with data in; nothing is left to autogenerate."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Engine, inspect
from tests.store.conftest import batch, everything, histogram, increment, launch, level

from specscope_server.kit.errors import InvalidInput, Unavailable
from specscope_server.models import Base
from specscope_server.store import migrate
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.maintenance import disk_use


def test_the_models_have_nothing_that_the_migrations_lack(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(
        batch(level(), histogram(), sequence=2)
    )  # makes partitions, which must not be taken for tables
    assert migrate.is_current(store_engine)
    command.check(migrate.configuration(store_engine))


def test_down_and_up_again_with_data_in(store_engine: Engine, writer: IngestWriter) -> None:
    sent = batch(level(), increment(), histogram(), launch("b"), sequence=2)
    writer.apply(sent)
    migrate.downgrade(store_engine, "base")
    assert migrate.current(store_engine) is None
    assert not migrate.is_current(store_engine)
    assert set(inspect(store_engine).get_table_names()) <= {"alembic_version"}
    migrate.upgrade(store_engine)
    assert migrate.is_current(store_engine)
    assert not any(everything(store_engine).values())
    fresh = IngestWriter(store_engine, writer._clock)
    assert fresh.apply_counted(sent).samples == 2


def test_every_migration_goes_down_and_up_one_by_one(store_engine: Engine) -> None:
    script = migrate.ScriptDirectory.from_config(migrate.configuration(store_engine))
    revisions = [revision.revision for revision in script.walk_revisions()]
    for revision in revisions:
        assert migrate.current(store_engine) == revision
        migrate.downgrade(store_engine, "-1")
    for revision in reversed(revisions):
        migrate.upgrade(store_engine, "+1")
        assert migrate.current(store_engine) == revision
    assert set(Base.metadata.tables) < set(inspect(store_engine).get_table_names())


def test_files_are_named_by_date() -> None:
    names = [path.name for path in (migrate.migrations_path() / "versions").glob("*.py")]
    assert names
    for name in names:
        year, month, day, rest = name.split("_", 3)
        assert (len(year), len(month), len(day)) == (4, 2, 2)
        assert f"{year}{month}{day}".isdigit()
        assert rest


def test_a_revision_that_does_not_exist_is_named(sqlite_engine: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"revision 'nonsense'.*newer version"):
        migrate.upgrade(sqlite_engine, "nonsense")
    with pytest.raises(InvalidInput, match="revision 'nonsense'"):
        migrate.downgrade(sqlite_engine, "nonsense")


def test_a_failed_migration_leaves_nothing_on_sqlite(tmp_path: Path, sqlite_engine: Engine) -> None:
    migrate.downgrade(sqlite_engine, "base")
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE request (other INTEGER)"
        )  # collides with the last table made
    with pytest.raises(Unavailable, match="already exists"):
        migrate.upgrade(sqlite_engine)
    assert set(inspect(sqlite_engine).get_table_names()) <= {"alembic_version", "request"}
    assert migrate.current(sqlite_engine) is None


def test_processes_that_upgrade_at_once_all_succeed(store_engine: Engine, store_url: str) -> None:
    migrate.downgrade(store_engine, "base")
    command_line = [sys.executable, "-m", "specscope", "db", "upgrade", "--database", store_url]
    processes = [
        subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(3)
    ]
    results = [(process.communicate(timeout=120)[0], process.returncode) for process in processes]
    assert [code for _, code in results] == [0, 0, 0], results
    assert migrate.is_current(store_engine)


def test_threads_that_upgrade_at_once_all_succeed(store_engine: Engine) -> None:
    migrate.downgrade(store_engine, "base")
    failures: list[BaseException] = []

    def go() -> None:
        try:
            migrate.upgrade(store_engine)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert migrate.is_current(store_engine)


@pytest.mark.postgres
def test_a_migration_does_not_wait_long_for_a_lock(
    postgres_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_engine.connect() as reader, reader.begin():
        reader.exec_driver_sql("SELECT count(*) FROM sample")
        with pytest.raises(Unavailable, match="lock timeout"):
            migrate.downgrade(postgres_engine, "base")
    assert migrate.is_current(postgres_engine), "nothing was changed"


def test_disk_use_is_told(store_engine: Engine, writer: IngestWriter) -> None:
    before = disk_use(store_engine)
    writer.apply(batch(*(level(time_ms=level().time_ms + i) for i in range(20_000)), sequence=2))
    assert disk_use(store_engine) > before + 200_000
