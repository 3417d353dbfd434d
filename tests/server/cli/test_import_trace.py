"""`specscope import trace`: what is printed and stored, and how each bad input is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.server.traces.conftest import RECORDED
from tests.support.traces import Plan, write

from specscope_server.cli.import_ import main
from specscope_server.store.engine import create_store_engine

DATABASE = ("--database", "sqlite:///a.db")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path, more: tuple[str, ...] = DATABASE) -> int:
    """Run the command."""
    return main(["trace", *map(str, arguments), "--server", "gpu1", *more])


def stored() -> list[tuple[Any, ...]]:
    """Return (name, ranks, cycles) of the stored traces."""
    engine = create_store_engine("sqlite:///a.db")
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, ranks, cycles FROM trace ORDER BY name"))
        found = [tuple(row) for row in rows]
    engine.dispose()
    return found


def test_a_folder_is_one_capture_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(Plan(ranks=3, cycles=7), tmp_path)
    assert run(tmp_path, "--note", "x") == 0
    said = capsys.readouterr().err
    assert "trace     1772366400.25, 3 files, 3 ranks" in said
    assert "rank      TP2: 7 cycles, phases from launches" in said
    assert "stored    1772366400.25: trace 1" in said
    assert run(tmp_path) == 0
    assert "it was there already, as trace 1" in capsys.readouterr().err
    assert stored() == [("1772366400.25", 3, 7)]


def test_a_dry_run_prints_json_and_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RECORDED, "--dry-run", "--format", "json", more=()) == 0
    [found] = json.loads(capsys.readouterr().out)
    [rank] = found["ranks"]
    assert rank["ranges"] == {"draft": 14, "verify": 14, "draft_extend": 17, "prefill": 3}
    assert {phase["phase"]: phase["count"] for phase in rank["phases"]}["prefill"] == 3
    assert not list(tmp_path.iterdir())
    assert run(RECORDED, "--dry-run", more=()) == 0
    assert "TP0: 14 cycles" in capsys.readouterr().out


def test_one_bad_capture_does_not_end_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write(Plan(ranks=1, cycles=5), folder)
    (folder / "0.5-TP-0.trace.json").write_text("<html>")
    assert run(folder) == 1
    said = capsys.readouterr().err
    assert "0.5-TP-0.trace.json: it is no JSON; name a Kineto or Chrome trace" in said
    assert stored() == [("1772366400.25", 1, 5)]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("nowhere.json",), 1, "nowhere.json cannot be read: No such file"),
        ((".",), 2, "holds no *.json or *.json.gz"),
        ((str(RECORDED), "--name", "a\nb"), 2, "printable characters"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: tuple[str, ...], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == status
    assert words in capsys.readouterr().err


def test_originals_are_kept_where_the_settings_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECSCOPE_TRACE_FOLDER", str(tmp_path / "kept"))
    assert run(RECORDED) == 0
    [kept] = (tmp_path / "kept").rglob("*.gz")
    assert kept.read_bytes() == RECORDED.read_bytes()
