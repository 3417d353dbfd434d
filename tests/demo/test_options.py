"""Where the demo keeps its data."""

from __future__ import annotations

from pathlib import Path

import pytest

from specscope_server.cli.demo import database_url, new_log


def test_a_file_becomes_a_url_and_its_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert database_url("var/demo.sqlite3") == f"sqlite:///{tmp_path}/var/demo.sqlite3"
    assert (tmp_path / "var").is_dir()


def test_a_url_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert database_url("postgresql+psycopg://u@h/n") == "postgresql+psycopg://u@h/n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("database", "log"), [("here/x.sqlite3", "here/x.log"), ("postgresql+psycopg://u@h/n", "var/demo.log")]
)
def test_the_log_lies_beside_the_database_and_starts_empty(
    database: str, log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / log
    path.parent.mkdir()
    path.write_text("of the last run")
    assert new_log(database) == path
    assert path.read_text() == ""
