"""`specscope import requests`: real exports, gzip, damaged files, twice; what the API says afterwards."""

from __future__ import annotations

import gzip
import json
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from tests.server.requests.answers import FIXTURES

from specscope_server.cli.import_ import main
from specscope_server.cli.import_requests import MAX_LINE_BYTES, hour_of
from specscope_server.store.engine import create_store_engine

EXPORT = FIXTURES / "sglang-request-metrics-20261130_01.log"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECSCOPE_RETENTION_REQUESTS_DAYS", "36500")


def stored(columns: str) -> list[tuple[Any, ...]]:
    """Return rows of the table of requests in the file that the command made."""
    engine = create_store_engine("sqlite:///a.db")
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(text(f"SELECT {columns} FROM request ORDER BY id"))]
    engine.dispose()
    return rows


def run(*files: Path, more: tuple[str, ...] = ("--database", "sqlite:///a.db")) -> int:
    """Run the command."""
    return main(["requests", *map(str, files), "--server", "gpu1", *more])


def test_a_real_export_is_stored_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EXPORT) == 0
    assert "17 stored" in capsys.readouterr().err
    [(n, calls)] = stored("count(*), sum(verify_calls)")
    lines = [json.loads(line) for line in EXPORT.read_text("utf-8").splitlines()]
    assert (n, calls) == (17, sum(line.get("spec_verify_ct", 0) for line in lines))
    assert "capital" not in str(stored("*"))
    assert run(EXPORT) == 0
    assert "17 already there" in capsys.readouterr().err
    assert len(stored("id")) == 17


def test_gzip_and_damage_are_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, cut = tmp_path / "whole.log.gz", tmp_path / "cut.log.gz"
    whole.write_bytes(gzip.compress(EXPORT.read_bytes()))
    cut.write_bytes(whole.read_bytes()[:-300])
    assert run(cut) == 0
    said = capsys.readouterr().err
    assert "damaged" in said
    assert 0 < len(stored("id")) < 17
    assert run(whole, cut) == 0
    assert len(stored("id")) == 17


def test_lines_that_are_no_records_are_counted_by_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = EXPORT.read_bytes().splitlines()[0]
    path = tmp_path / "mixed.log"
    bad = [
        b"\x00\xff\xfe",
        good[:40],
        b'{"id": "x"}',
        b"a" * (MAX_LINE_BYTES + 10),
        b'{"id": "HEALTH_CHECK_1"}',
    ]
    path.write_bytes(b"\n".join([*bad, good, good[:40]]))
    assert run(path) == 0
    said = capsys.readouterr().err
    assert "1 stored, 5 refused, 1 health checks" in said
    assert "refused   1 × it does not say when it finished" in said
    assert f"refused   1 × the line is over {MAX_LINE_BYTES} bytes" in said


def test_the_hour_of_the_file_stands_in_for_a_missing_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sglang-request-metrics-20260301_13.log"
    path.write_text('{"id": "a", "spec_verify_ct": 4}\n', "utf-8")
    more = ("--database", "sqlite:///a.db", "--timezone", "Europe/Berlin")
    assert run(path, more=more) == 0
    assert "1 do not say when they finished" in capsys.readouterr().err
    assert stored("time_ms") == [(1_772_366_400_000,)]


def test_the_hour_is_read_in_the_zone_of_the_engine() -> None:
    assert hour_of(EXPORT.name, UTC) == 1_796_000_400_000
    assert hour_of(EXPORT.name, ZoneInfo("Europe/Berlin")) == 1_796_000_400_000 - 3_600_000
    assert hour_of("sglang-request-metrics-20269930_01.log", UTC) is None
    assert hour_of("other.log", UTC) is None


def test_a_dry_run_prints_records_and_stores_nothing(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(EXPORT, more=("--dry-run", "--format", "ndjson")) == 0
    printed = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert len(printed) == 17
    assert printed[0]["accepted_histogram"] == [3, 1, 1, 0]
    assert list(tmp_path.iterdir()) == []


def test_usage_errors_and_empty_files_have_their_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "none.log") == 2
    assert "cannot be read" in capsys.readouterr().err
    empty = tmp_path / "empty.log"
    empty.touch()
    assert run(empty) == 1
    assert run(EXPORT, more=("--timezone", "Mars/Base")) == 2
    assert "no such zone" in capsys.readouterr().err


def test_another_kind_of_file_is_told_once_with_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "sglang.log"
    log.write_text("[2026-11-30 01:00:00] Decode batch\n[2026-11-30 01:00:01] a line\n", "utf-8")
    assert run(log) == 1
    said = capsys.readouterr().err
    assert "refused   2 × the line is not JSON" in said
    assert "--export-metrics-to-file" in said
    assert "[warning" not in said
