"""`specscope import log` as a user runs it: what it prints, what it stores, and what the API then says."""

from __future__ import annotations

import gzip
import io
import json
import sys
from datetime import UTC
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import create_engine
from tests.collectors.log.reading import BODY, FIXTURES, LINE, ms
from tests.server.client import Web
from tests.store.conftest import everything, rows

from specscope.__main__ import main as specscope
from specscope_collectors.observations import Batch
from specscope_server.app import create_app
from specscope_server.cli.import_log import IMPORTED, LogImport, LogPart
from specscope_server.settings import Settings
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import Applied, IngestWriter

NOW = ms("2026-11-29 22:00:00")
CAPTURE = FIXTURES / "server-eagle3-chain-0.5.8.log"
STRICT_CAPTURE = FIXTURES / "server-eagle3-chain-0.5.23.log"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A fresh SQLite file."""
    return Settings(database=f"sqlite:///{tmp_path}/store.sqlite3")


def store(settings: Settings, *logs: bytes, server: str = "gpu1", now: int = NOW) -> list[str]:
    """Import logs; return what became of them in words."""
    parts = [LogPart(f"part {at}", partial(io.BytesIO, log)) for at, log in enumerate(logs)]
    return LogImport(server, UTC).store(parts, settings, lambda: now)[1]


def tables(settings: Settings) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything that is stored."""
    engine = create_engine(settings.database)
    try:
        return everything(engine)
    finally:
        engine.dispose()


def rounded(table: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows whose sums do not depend on the order of adding."""
    return [tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in table]


def seconds(count: int) -> bytes:
    """Return a log with a line per second and noise of about 1 kB behind each."""
    lines = [f"[2026-11-29 20:{at // 60:02}:{at % 60:02} TP0] {BODY}\n{'z' * 1000}\n" for at in range(count)]
    return "".join(lines).encode()


def test_a_capture_can_be_read_through_the_api(settings: Settings) -> None:
    assert store(settings, CAPTURE.read_bytes()) == ["stored    part 0: 119 values"]
    engine = create_store_engine(settings.database)
    web = Web(create_app(settings, engine=engine, clock=lambda: NOW))
    window = {"from_": "2026-11-29T21:29:00Z", "to": "2026-11-29T21:33:00Z"}
    found = web.api("/acceptance/summary", server="gpu1", **window)
    lengths = [2.2, 2.0, 2.0, 2.2, 2.6, 2.0, 2.0, 2.17, 2.0, 1.2, 2.0]
    assert found["evidence"] == "gauges"
    assert found["accept_length"]["value"] == pytest.approx(sum(lengths) / len(lengths))
    assert found["accept_length"]["n"] == len(lengths)
    assert found["engine_reported_rate"]["formula"] == "τ/D"
    assert found["engine_reported_rate"]["floor"] == 0.25
    (launch,) = web.api("/servers/gpu1/launches")["launches"]
    assert launch["reason"] == "first seen"
    series = web.api("/series/query", server="gpu1", metric="spec.accept_length", step="1s", **window)
    points = [value for one in series["series"] for value in one["values"] if value is not None]
    assert points == pytest.approx(lengths)
    engine.dispose()


def test_importing_twice_changes_nothing_also_when_compressed(settings: Settings) -> None:
    log = CAPTURE.read_bytes()
    store(settings, log)
    before = tables(settings)
    assert store(settings, log) == ["stored    part 0: it was imported before: nothing changed"]
    assert store(settings, gzip.compress(log)) == [
        "stored    part 0: it was imported before: nothing changed"
    ]
    assert tables(settings) == before
    assert len(before["sample"]) == 119


def test_a_log_that_has_grown_is_taken_up_where_the_import_ended(settings: Settings, tmp_path: Path) -> None:
    log = seconds(3000)
    store(settings, log[: len(log) // 3])
    store(settings, log)
    other = Settings(database=f"sqlite:///{tmp_path}/at-once.sqlite3")
    store(other, log)
    grown, at_once = tables(settings), tables(other)
    assert len(at_once["sample"]) == 3000 * 7
    assert grown["sample"] == at_once["sample"]
    for table in ("sample_1m", "sample_10m", "sample_1h"):
        assert rounded(grown[table]) == rounded(at_once[table])
    assert store(settings, log) == ["stored    part 0: it was imported before: nothing changed"]


def test_an_import_that_was_killed_goes_on_where_it_was(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = b"".join(log for log in (CAPTURE.read_bytes(), seconds(3000)))
    apply, left = IngestWriter.apply_counted, [2]

    def dying(writer: IngestWriter, batch: Batch) -> Applied:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return apply(writer, batch)

    monkeypatch.setattr(IngestWriter, "apply_counted", dying)
    with pytest.raises(KeyboardInterrupt):
        store(settings, log)
    monkeypatch.undo()
    assert 0 < len(tables(settings)["sample"]) < 3000 * 7
    store(settings, log)
    other = Settings(database=f"sqlite:///{tmp_path}/at-once.sqlite3")
    store(other, log)
    assert tables(settings)["sample"] == tables(other)["sample"]
    kinds = [row[4] for row in tables(settings)["event"]]
    assert kinds == [row[4] for row in tables(other)["event"]]


def test_both_databases_take_a_log(store_url: str) -> None:
    engine = create_store_engine(store_url)
    settings = Settings(database=store_url)
    assert store(settings, CAPTURE.read_bytes()) == ["stored    part 0: 119 values"]
    assert store(settings, CAPTURE.read_bytes()) == [
        "stored    part 0: it was imported before: nothing changed"
    ]
    assert len(rows(engine, "sample", "value")) == 119
    engine.dispose()


def test_parts_of_a_log_share_their_launch(settings: Settings) -> None:
    log = CAPTURE.read_bytes()
    lines = log.splitlines(keepends=True)
    store(settings, b"".join(lines[:80]), b"".join(lines[80:]))
    found = tables(settings)
    assert len(found["launch"]) == 1
    assert len(found["sample"]) == 119


def test_several_launches_in_one_block(settings: Settings) -> None:
    log = CAPTURE.read_bytes()
    later = log.replace(b"[2026-11-29 21:29", b"[2026-11-29 21:39").replace(
        b"[2026-11-29 21:3", b"[2026-11-29 21:4"
    )
    store(settings, log + later)
    found = tables(settings)
    assert len(found["launch"]) == 2
    assert len(found["sample"]) == 2 * 119


def test_a_known_server_keeps_its_address(settings: Settings) -> None:
    store(settings, LINE.encode() + b"\n")
    engine = create_engine(settings.database)
    assert rows(engine, "server", "name", "base_url") == [("gpu1", IMPORTED)]
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE server SET base_url = 'http://gpu1:30000'")
    store(settings, STRICT_CAPTURE.read_bytes())
    assert rows(engine, "server", "name", "base_url") == [("gpu1", "http://gpu1:30000")]
    engine.dispose()


def test_old_values_are_stored_and_the_retention_is_named(settings: Settings) -> None:
    outcome = store(settings, LINE.encode() + b"\n", now=NOW + 30 * 86_400_000)
    assert outcome[0] == "stored    part 0: 7 values"
    assert "older than 7 days" in outcome[1]
    assert len(tables(settings)["sample_1h"]) == 7


def test_times_in_the_future_are_refused_by_the_store_and_counted(settings: Settings) -> None:
    outcome = store(settings, LINE.encode() + b"\n", now=NOW - 30 * 86_400_000)
    assert any("7 × future" in line or "× future" in line for line in outcome)
    assert tables(settings)["sample"] == []


def test_dry_run_prints_one_observation_per_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["import", "log", str(CAPTURE), "--dry-run"]
    assert specscope(arguments) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    kinds = [record["type"] for record in records]
    assert (kinds.count("launch"), kinds.count("event"), kinds.count("level")) == (1, 2, 119)
    assert kinds.index("launch") < kinds.index("level")
    assert "11 Decode lines, 14 Prefill lines" in err
    assert "printed rate: τ/D" in err
    assert specscope([*arguments, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == records
    assert specscope([*arguments, "--format", "text"]) == 0
    assert "spec.accept_length" in capsys.readouterr().out


def test_the_command_stores_and_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    log = f"[2025-11-29 20:50:45 TP0] {BODY}\n".encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log)))
    arguments = ["import", "log", "-", "--server", "gpu1", "--timezone", "Europe/Berlin"]
    assert specscope([*arguments, "--database", settings.database]) == 0
    assert "stored    standard input: 7 values" in capsys.readouterr().err
    assert {row[1] for row in tables(settings)["sample"]} == {ms("2025-11-29 19:50:45")}


WRONG = [
    (["missing.log"], 2, "missing.log cannot be read"),
    (["."], 2, "cannot be read"),
    (["{log}", "--timezone", "Mars/Base"], 2, "no such zone"),
    (["{log}", "--timezone", "../etc/passwd"], 2, "no such zone"),
    (["{log}", "--date", "yesterday"], 2, "write YYYY-MM-DD"),
    (["{log}", "--server", " "], 2, "name the server"),
    (["{log}", "{without}", "--database", "sqlite:///a.sqlite3"], 2, "--server is missing"),
    (["{empty}"], 1, "no Decode or Prefill line"),
    (["{zstd}"], 1, "zstdcat"),
    (["{log}", "--database", "nonsense"], 1, "nonsense"),
]


@pytest.mark.parametrize(("arguments", "status", "words"), WRONG)
def test_wrong_use_is_explained(
    arguments: list[str], status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text(LINE + "\n")
    (tmp_path / "empty.log").write_text("nothing\n")
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    given = [
        text.format(log="a.log", empty="empty.log", zstd="a.zst", without="{without}") for text in arguments
    ]
    server = [] if {"--server", "{without}"} & {*given} else ["--server", "gpu1"]
    given = [each for each in given if each != "{without}"]
    assert (
        specscope(["import", "log", *given, *server, *([] if "--database" in given else ["--dry-run"])])
        == status
    )
    assert words in capsys.readouterr().err
