"""`specscope db` does what it says, and says what it cannot do."""

from __future__ import annotations

import io
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url
from tests.store.conftest import NOW, T0, batch, increment, launch, level, rows
from tests.support.postgresql import find_binaries

from specscope_server.cli.db import main
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter


def test_upgrade_current_downgrade(store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["current", "--database", store_url]) == 0
    assert "newest" in capsys.readouterr().out
    assert main(["downgrade", "base", "--yes", "--database", store_url]) == 0
    assert main(["current", "--database", store_url]) == 1
    assert "run specscope db upgrade" in capsys.readouterr().out
    assert main(["upgrade", "--database", store_url]) == 0
    assert "none → " in capsys.readouterr().out
    assert main(["upgrade", "--database", store_url]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_the_database_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECSCOPE_DATABASE", f"sqlite:///{tmp_path}/mine.sqlite3")
    assert main(["upgrade"]) == 0
    assert (tmp_path / "mine.sqlite3").is_file()


def test_what_is_not_there_is_named_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.sqlite3"
    for command in (["current"], ["downgrade", "base", "--yes"], ["backup", str(tmp_path / "copy")]):
        assert main([*command, "--database", f"sqlite:///{missing}"]) == 1
        assert str(missing) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_one_revision_back_is_written_as_the_help_says(
    store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", "--database", store_url]) == 0
    assert main(["downgrade", "-1", "--yes", "--database", store_url]) == 0
    assert main(["current", "--database", store_url]) == 1
    assert "(newest is" in capsys.readouterr().out.splitlines()[-1]


def test_a_database_of_a_newer_version_is_told_from_one_to_upgrade(
    sqlite_engine: Engine, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert main(["current", "--database", sqlite_url]) == 1
    out = capsys.readouterr().out
    assert "9999 (unknown here" in out
    assert "upgrade" not in out
    assert main(["upgrade", "--database", sqlite_url]) == 1
    assert "newer version" in capsys.readouterr().err


def test_a_database_of_another_program_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE server (theirs)")
    assert main(["upgrade", "--database", f"sqlite:///{other}"]) == 1
    message = capsys.readouterr().err
    assert "table server already exists" in message
    assert "give Specscope a database of its own" in message
    with closing(sqlite3.connect(other)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert tables == [("server",)]


def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bogus"]) == 2
    assert main(["upgrade", "--bogus"]) == 2


def test_a_refused_downgrade_changes_nothing(
    sqlite_engine: Engine, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["downgrade", "base", "--database", sqlite_url]) == 1
    assert main(["current", "--database", sqlite_url]) == 0


def test_a_sqlite_backup_taken_while_writing_is_consistent(
    sqlite_engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    writer, stop = IngestWriter(sqlite_engine, lambda: NOW), threading.Event()
    writer.apply(batch(launch(), *(level(labels={"i": str(i)}) for i in range(500))))

    def write() -> None:
        sequence = 2
        while not stop.is_set():
            growth = [increment(labels={"i": str(i)}, time_ms=T0 + sequence) for i in range(500)]
            writer.apply(batch(*growth, sequence=sequence))
            sequence += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(3):
            assert main(["backup", str(tmp_path / f"{number}.sqlite3"), "--database", sqlite_url]) == 0
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        engine = create_store_engine(f"sqlite:///{tmp_path}/{number}.sqlite3")
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        [(sequence,)] = rows(engine, "collector", "sequence")
        assert len(rows(engine, "sample")) == 500 * sequence
        assert sum(n for (n,) in rows(engine, "sample_1h", "n")) == 500 * sequence
        engine.dispose()


def test_a_backup_overwrites_nothing(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "there"
    target.write_text("precious")
    assert main(["backup", str(target), "--database", sqlite_url]) == 1
    assert "exists already" in capsys.readouterr().err
    assert target.read_text() == "precious"
    assert main(["backup", str(tmp_path / "no" / "x"), "--database", sqlite_url]) == 1
    assert "no folder" in capsys.readouterr().err


def test_a_failed_backup_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.sqlite3"
    broken.write_text("no database" * 1_000)
    with pytest.raises(sqlite3.DatabaseError):
        main(["backup", str(tmp_path / "copy"), "--database", f"sqlite:///{broken}"])
    assert [path.name for path in tmp_path.iterdir()] == ["broken.sqlite3"]


@pytest.mark.postgres
def test_a_postgresql_backup_can_be_restored(
    postgres_engine: Engine, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make_url(postgres_url).query.get("host", "").startswith("/tmp/specscope-pg-"):  # type: ignore[union-attr]
        monkeypatch.setenv("PATH", str(find_binaries()), prepend=":")  # pg_dump of the server's own version
    if shutil.which("pg_dump") is None:
        pytest.skip("no pg_dump of the server's version")
    IngestWriter(postgres_engine, lambda: NOW).apply(batch(launch(), level(), increment()))
    target = tmp_path / "copy.dump"
    assert main(["backup", str(target), "--database", postgres_url]) == 0
    assert target.read_bytes()[:5] == b"PGDMP"


@pytest.mark.postgres
def test_without_pg_dump_it_says_what_to_install(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["backup", str(tmp_path / "copy"), "--database", postgres_url]) == 1
    assert "postgresql-client" in capsys.readouterr().err
