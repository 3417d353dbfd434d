"""Opening the store: set up alike everywhere, and clear words when it cannot be opened."""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from specscope_server.kit.errors import InvalidInput, SpecscopeError, Unavailable
from specscope_server.store.engine import create_store_engine, parse_url, write_transaction


def test_sqlite_is_set_up_for_one_writer_and_many_readers(sqlite_engine: Engine) -> None:
    expected = {
        "journal_mode": "wal",
        "synchronous": 1,
        "foreign_keys": 1,
        "auto_vacuum": 2,
        "busy_timeout": 10_000,
        "cache_size": -65_536,
        "wal_autocheckpoint": 4_000,
    }
    with sqlite_engine.connect() as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in expected}
    assert found == expected


def test_time_series_tables_are_clustered_and_strict(sqlite_engine: Engine) -> None:
    with sqlite_engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name, wr, strict FROM pragma_table_list WHERE wr").all()
    names = {
        f"{kind}{suffix}" for kind in ("sample", "distribution") for suffix in ("", "_1m", "_10m", "_1h")
    }
    assert {name for name, _, _ in rows} == {*names, "latest"}
    assert all(strict for _, _, strict in rows)


def test_readers_see_the_old_state_while_a_writer_writes(sqlite_engine: Engine) -> None:
    insert = "INSERT INTO bucket_layout (bounds) VALUES ('[1]')"
    with write_transaction(sqlite_engine) as writer, sqlite_engine.connect() as reader:
        writer.exec_driver_sql(insert)
        assert reader.exec_driver_sql("SELECT count(*) FROM bucket_layout").scalar_one() == 0


def test_a_writer_waits_for_the_writer_before_it(store_engine: Engine) -> None:
    entered, done = threading.Event(), []

    def second() -> None:
        entered.set()
        with write_transaction(store_engine) as connection:
            connection.exec_driver_sql("INSERT INTO bucket_layout (bounds) VALUES ('[2]')")
        done.append(True)

    thread = threading.Thread(target=second)
    with write_transaction(store_engine) as connection:
        connection.exec_driver_sql("INSERT INTO bucket_layout (bounds) VALUES ('[1]')")
        thread.start()
        assert entered.wait(10)
    thread.join(20)
    assert done == [True]


def test_an_error_rolls_back(store_engine: Engine) -> None:
    def fail() -> None:
        with write_transaction(store_engine) as connection:
            connection.exec_driver_sql("INSERT INTO bucket_layout (bounds) VALUES ('[1]')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store_engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM bucket_layout").scalar_one() == 0


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_all_spellings_of_postgresql_mean_psycopg(scheme: str) -> None:
    parsed = parse_url(f"{scheme}://me:secret@db:5432/specscope?sslmode=require")
    assert parsed.drivername == "postgresql+psycopg"
    assert (parsed.password, parsed.host, parsed.query["sslmode"]) == ("secret", "db", "require")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "cannot be read; write sqlite:///FILE"),
        ("", "cannot be read"),
        ("mysql://db/x", "'mysql' is not supported"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("postgresql://db:port/x", "cannot be read"),
    ],
)
def test_an_url_that_cannot_be_used_is_named(url: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        create_store_engine(url)
    assert words in caught.value.detail


def test_a_file_that_cannot_be_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("this is no database, whatever its name says" * 100)
    for path, words in (
        (tmp_path / "missing" / "x.db", "no folder"),
        (tmp_path, "not writable"),
        (text, "file is not a database"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            create_store_engine(f"sqlite:///{path}")
        assert str(path) in caught.value.detail


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(Unavailable, match="does not answer") as caught:
        create_store_engine("postgresql://me:s3cret@127.0.0.1:1/x")
    assert "s3cret" not in caught.value.detail
    assert "127.0.0.1:1" in caught.value.detail


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SpecscopeError, match=r"pip install 'specscope\[postgres\]'"):
        create_store_engine("postgresql://localhost/x")


def test_a_new_file_gets_its_settings_before_its_first_table(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite3"
    create_store_engine(f"sqlite:///{path}").dispose()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_file_that_is_removed_or_replaced_while_in_use_is_not_written_on(
    sqlite_engine: Engine, tmp_path: Path
) -> None:
    path = Path(sqlite_engine.url.database or "")
    sqlite_engine.dispose()  # so that the log is in the file
    elsewhere = path.rename(tmp_path / "elsewhere")
    for replacement in (None, elsewhere):
        if replacement:
            path.write_bytes(replacement.read_bytes())
        with (
            pytest.raises(OperationalError, match=r"removed or replaced while in use.*restart"),
            write_transaction(sqlite_engine) as connection,
        ):
            connection.exec_driver_sql("DELETE FROM server")
        assert path.exists() is (replacement is not None)  # an empty one is not made either
    elsewhere.rename(path)
    with sqlite_engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM server").scalar_one() == 0
