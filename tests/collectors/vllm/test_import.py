"""`specscope import log` of a vLLM log: what is stored, what the API then says, and nothing twice."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.vllm.test_log import START, load_line, spec_line
from tests.server.client import Web
from tests.support.vllm import VllmEngine

from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import CounterMemory, advance
from specscope_collectors.observations import Batch, Launch, Target
from specscope_collectors.sources.vllm_metrics.mapping import map_exposition
from specscope_server.app import create_app
from specscope_server.cli.import_log import LogImport, LogPart
from specscope_server.settings import Settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

T0 = int(datetime(2026, 11, 29, 20, 51, tzinfo=UTC).timestamp() * 1000)
NOW = T0 + 3_600_000
HISTOGRAM = [10, 20, 5, 5]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A fresh SQLite file."""
    return Settings(database=f"sqlite:///{tmp_path}/store.sqlite3")


def log_of(lines: int) -> bytes:
    seconds = range(10, 10 + 10 * lines, 10)
    text = [START, *(line for at in seconds for line in (load_line(at), spec_line(at, HISTOGRAM)))]
    return ("\n".join(text) + "\n").encode()


def store(settings: Settings, log: bytes) -> tuple[Any, list[str]]:
    parts = [LogPart("vllm.log", partial(io.BytesIO, log))]
    return LogImport("gpu1", UTC, year=2026).store(parts, settings, lambda: NOW)


def summary(settings: Settings) -> Any:
    engine = create_store_engine(settings.database)
    try:
        web = Web(create_app(settings, engine=engine, clock=lambda: NOW))
        span = {"from": "2026-11-29T20:50:00Z", "to": "2026-11-29T20:59:00Z"}
        return web.api("/acceptance/summary", server="gpu1", **span)
    finally:
        engine.dispose()


def test_counts_of_a_log_are_the_best_evidence(settings: Settings) -> None:
    read, words = store(settings, log_of(5))
    assert read.found
    assert any("certain in 5 of 5" in word for word in read.words)
    assert any("vllm.log" in word for word in words)
    found = summary(settings)
    assert found["evidence"] == "draft_counters"
    assert found["counts"]["verify_calls"] == 200
    assert found["accept_length"]["value"] == pytest.approx(1 + 45 / 40)
    assert found["draft_acceptance"]["value"] == pytest.approx(45 / 120)
    assert found["engine_reported_rate"]["formula"] == "accepted / proposed"
    assert found["launch"]["engine"] == "vllm"
    assert (found["num_steps"]["value"], found["num_draft_tokens"]["value"]) == (3, 4)


def test_importing_again_also_grown_and_compressed_counts_once(settings: Settings) -> None:
    store(settings, log_of(3))
    store(settings, log_of(3))
    store(settings, gzip.compress(log_of(5)))
    assert summary(settings)["counts"]["verify_calls"] == 200


def test_what_was_scraped_is_not_counted_again(settings: Settings) -> None:
    engine = create_store_engine(settings.database)
    try:
        prepare_store(engine, settings)
        writer = IngestWriter(engine, lambda: NOW)
        served = VllmEngine(model="tiny")
        launch = Launch(key="w", time_ms=T0, engine="vllm", engine_version="0.11.0", version_source="version",
                        model="tiny/target", served_model_name="tiny")  # fmt: skip
        memory = CounterMemory()
        for step in range(12):
            found = map_exposition(parse_exposition(served.metrics(), max_series=500, wanted=None))
            grown = advance(memory, found.counters, found.histograms, T0 + 5_000 * step)
            memory = grown.memory
            writer.apply(
                Batch(
                    collector_id="c", sequence=step + 1, target=Target(name="gpu1", base_url="http://gpu1"),
                    launch_key="w", observations=(*([] if step else [launch]), *grown.increments),
                )
            )  # fmt: skip
            served.serve(50, seed=step)
    finally:
        engine.dispose()
    before = summary(settings)["counts"]
    store(settings, log_of(5))
    assert summary(settings)["counts"] == before


def test_a_log_of_neither_engine_says_what_is_needed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specscope.__main__ import main as specscope

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_bytes(log_of(2))
    assert specscope(["import", "log", "a.log", "--server", "s", "--dry-run"]) == 1
    assert "give --year" in capsys.readouterr().err
    assert specscope(["import", "log", "a.log", "--year", "2026", "--dry-run", "--format", "text"]) == 0
    assert "spec.drafts_proposed     +" in capsys.readouterr().out
