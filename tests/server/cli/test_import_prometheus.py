"""`specscope import prometheus`: a real Prometheus into a real store; twice, stopped, beside a scrape."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.collectors.prometheus.recorded import (
    INSTANCE,
    night,
    read,
    scraped_by_us,
    stored_by_prometheus,
    sums,
)
from tests.demo.processes import eventually
from tests.support.prometheus import Prometheus, need_prometheus, running

from specscope_collectors.observations import Batch, Launch, Level, Target
from specscope_collectors.sources.prometheus.job import Config
from specscope_server.cli.import_ import main
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.migrate import upgrade

DATABASE = "sqlite:///a.db"
NIGHT = night(1_800, speed=2)
FULL = ("--since", "7h", "--raw", "7h", "--database", DATABASE)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Return a Prometheus that holds one night of one engine."""
    need_prometheus()
    with running(tmp_path_factory.mktemp("prometheus"), stored_by_prometheus(NIGHT)) as server:
        yield server


def stored(query: str) -> list[tuple[object, ...]]:
    """Return rows of the database that the command made."""
    engine = create_store_engine(DATABASE)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]
    finally:
        engine.dispose()


TOKENS_METRIC = "tokens.generated"
TOKENS = (
    "SELECT sum(value) FROM sample JOIN series ON series.id = series_id WHERE metric = 'tokens.generated'"
)


def expected_tokens(until_ms: int | None = None) -> float:
    """Return the growth that our own scrape would have counted."""
    night = [each for each in NIGHT if until_ms is None or each[0] <= until_ms]
    return sum(value for (metric, _), value in sums(scraped_by_us(night)).items() if metric == TOKENS_METRIC)


def test_the_past_is_stored_once(prometheus: Prometheus, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prometheus", prometheus.url, *FULL]) == 0
    said = capsys.readouterr().err
    assert f"server    {INSTANCE}: " in said
    assert "SGLang 0.5.23 or later" in said
    assert stored(TOKENS) == [(expected_tokens(),)]
    assert stored("SELECT name FROM server") == [(INSTANCE,)]
    counted = stored("SELECT count(*) FROM sample")
    assert main(["prometheus", prometheus.url, *FULL]) == 0
    assert "nothing new" in capsys.readouterr().err
    assert stored("SELECT count(*) FROM sample") == counted
    assert stored(TOKENS) == [(expected_tokens(),)]


def test_what_we_scrape_ourselves_ends_the_past(
    prometheus: Prometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_ms = NIGHT[40][0]
    engine = create_store_engine(DATABASE)
    upgrade(engine)
    up = [
        Level(metric="scrape.up", labels={"source": "sglang_metrics"}, time_ms=at, value=float(at > begin_ms))
        for at in (begin_ms - 60_000, begin_ms + 1, begin_ms + 60_000)
    ]
    target = Target(name=INSTANCE, base_url="http://gpu1:30000")
    launch = Launch(key="live", time_ms=begin_ms + 1, engine="sglang", version_source="server_info")
    IngestWriter(engine).apply(
        Batch(
            collector_id="watch:x", sequence=1, target=target, launch_key="live", observations=(launch, *up)
        )
    )
    engine.dispose()
    assert main(["prometheus", prometheus.url, *FULL]) == 0
    assert "read up to where that began" in capsys.readouterr().err
    assert stored("SELECT name, base_url FROM server") == [(INSTANCE, "http://gpu1:30000")]
    newest = stored(
        "SELECT max(time_ms) FROM sample JOIN series ON series.id = series_id "
        "WHERE metric NOT LIKE 'scrape.%'"
    )
    assert newest == [(begin_ms,)]
    assert stored(TOKENS) == [(expected_tokens(begin_ms),)]


def test_another_api_with_the_same_past_is_refused(
    prometheus: Prometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = create_store_engine(DATABASE)
    upgrade(engine)
    writer = IngestWriter(engine)
    read(writer, Config(url=prometheus.url, back_fill="7h"))
    engine.dispose()
    other = prometheus.url.replace("127.0.0.1", "localhost")
    counted = stored("SELECT count(*) FROM sample")
    assert main(["prometheus", other, *FULL]) == 1
    assert f"was read from {prometheus.url}" in capsys.readouterr().err
    assert stored("SELECT count(*) FROM sample") == counted


def test_a_dry_run_prints_and_stores_nothing(
    prometheus: Prometheus, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    assert main(["prometheus", prometheus.url, *FULL, "--dry-run"]) == 0
    records = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    grown = sum(r["value"] for r in records if r.get("metric") == TOKENS_METRIC)
    assert grown == expected_tokens()
    assert not (tmp_path / "a.db").exists()


def test_ctrl_c_and_again_goes_on(prometheus: Prometheus, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "specscope", "import", "prometheus", prometheus.url, *FULL]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=os.environ)
    database = tmp_path / "a.db"

    def has_begun() -> bool:
        return process.poll() is not None or (database.exists() and bool(_samples()))

    def _samples() -> int:
        try:
            return int(str(stored("SELECT count(*) FROM sample")[0][0]))
        except Exception:
            return 0  # the tables are being made

    try:
        eventually(has_begun, "something is stored")
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=180)
    assert process.returncode in (0, 130), said
    assert main(["prometheus", prometheus.url, *FULL]) == 0
    assert stored(TOKENS) == [(expected_tokens(),)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--since", "yesterday"), "--since"),
        (("--since", "1h", "--until", "2h"), "not after"),
        (("--match", "x"), "matcher"),
        (("--header", "x"), "--header"),
        (("--token-env", "NOT_SET_HERE"), "not set"),
        (("--server-name", "x"), "{value}"),
        (("--step", "0s"), "step"),
    ],
)
def test_wrong_usage_is_named(more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prometheus", "http://127.0.0.1:9", *more]) == 2
    assert words in capsys.readouterr().err


def test_a_server_that_is_not_there_is_named(
    prometheus: Prometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prometheus", prometheus.url, *FULL, "--server", "gpu9:1"]) == 1
    said = capsys.readouterr().err
    assert "gpu9:1" in said
    assert "server_label" in said
