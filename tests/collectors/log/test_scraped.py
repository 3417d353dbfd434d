"""A log that is imported into a server whose metrics were scraped over the same time."""

from __future__ import annotations

import io
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from tests.collectors.log.reading import BODY, FIXTURES, ms
from tests.server.client import Web
from tests.store.conftest import everything

from specscope_collectors.observations import Batch, Launch, Level, Observation, SpeculativeConfig, Target
from specscope_server.app import create_app
from specscope_server.cli.import_log import LogImport, LogPart
from specscope_server.settings import Settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

CAPTURE = (FIXTURES / "server-eagle3-chain-0.5.8.log").read_bytes()
START, END, NOW = ms("2026-11-29 21:29:40"), ms("2026-11-29 21:33:00"), ms("2026-11-29 22:00:00")
LABELS = {"engine_type": "unified", "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0", "model_name": "m"}
METRICS = {
    "requests.running": 3.0, "requests.queued": 0.0, "spec.accept_length": 2.0, "throughput.generated": 5.0,
    "kv.usage": 0.1, "kv.used_tokens": 100.0, "spec.engine_accept_rate": 0.5,
}  # fmt: skip
WINDOW = {"from_": "2026-11-29T21:29:00Z", "to": "2026-11-29T21:34:00Z"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A fresh SQLite file."""
    return Settings(database=f"sqlite:///{tmp_path}/store.sqlite3")


def scrape(settings: Settings, start_ms: int = START, end_ms: int = END, **launch: Any) -> None:
    """Store what a scrape every 5 s gives."""
    engine = create_store_engine(settings.database)
    prepare_store(engine, settings)
    writer = IngestWriter(engine, lambda: NOW)
    fields = {
        "key": "scraped", "time_ms": start_ms, "engine": "sglang", "engine_version": "0.5.8",
        "version_source": "server_info", "model": "models/tiny-target",
        "speculative": SpeculativeConfig(algorithm="EAGLE3", num_draft_tokens=4), **launch,
    }  # fmt: skip
    found: list[Observation] = [Launch(**fields)]
    found += [
        Level(metric=metric, labels=LABELS, time_ms=time_ms, value=value)
        for time_ms in range(start_ms, end_ms, 5_000)
        for metric, value in METRICS.items()
    ]
    target = Target(name="gpu1", base_url="http://gpu1:30000")
    batch = Batch(
        collector_id=f"watch:{fields['key']}", sequence=1, target=target, launch_key=fields["key"],
        observations=tuple(found),
    )  # fmt: skip
    assert writer.apply(batch)
    engine.dispose()


def store(settings: Settings, *logs: bytes, **options: Any) -> list[str]:
    """Import logs; return what became of them in words."""
    parts = [LogPart(f"part {at}", partial(io.BytesIO, log)) for at, log in enumerate(logs)]
    return LogImport("gpu1", UTC, **options).store(parts, settings, lambda: NOW)[1]


def tables(settings: Settings) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything that is stored."""
    engine = create_engine(settings.database)
    try:
        return everything(engine)
    finally:
        engine.dispose()


def total(web: Web, metric: str) -> list[float]:
    """Return the sum over all series of a metric, minute by minute."""
    found = web.api("/series/query", server="gpu1", metric=metric, step="1m", launch="all", **WINDOW)
    columns = zip(*(one["values"] for one in found["series"]), strict=True)
    return [sum(value for value in column if value is not None) for column in columns]


def test_a_scraped_server_has_one_launch_and_no_sum_twice(settings: Settings) -> None:
    scrape(settings)
    engine = create_store_engine(settings.database)
    web = Web(create_app(settings, engine=engine, clock=lambda: NOW))
    running = total(web, "requests.running")
    assert max(running) == 3.0
    outcome = store(settings, CAPTURE)
    assert outcome[-1] == "left out  119 values: the server's metrics were scraped, which stand"
    assert total(web, "requests.running") == running
    (launch,) = web.api("/servers/gpu1/launches")["launches"]
    assert launch["engine_version"] == "0.5.8"
    (summary,) = [web.api("/acceptance/summary", server="gpu1", **WINDOW)]
    assert summary["accept_length"]["value"] == pytest.approx(2.0)
    kinds = [row[4] for row in tables(settings)["event"]]
    assert kinds == ["rate_definition"]
    engine.dispose()


def test_what_only_the_log_tells_is_added(settings: Settings) -> None:
    scrape(settings)
    lines = CAPTURE.replace(b"#queue-req", b"fwd occupancy: 40.00, #queue-req")
    lines += b"[2026-11-29 21:32:50 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3\n"
    store(settings, lines)
    engine = create_store_engine(settings.database)
    web = Web(create_app(settings, engine=engine, clock=lambda: NOW))
    found = web.api(
        "/series/query", server="gpu1", metric="engine.forward_occupancy", step="1s", launch="all", **WINDOW
    )
    assert [value for one in found["series"] for value in one["values"] if value is not None] == [0.4] * 11
    assert sorted(row[4] for row in tables(settings)["event"]) == ["rate_definition", "retraction"]
    assert len(tables(settings)["launch"]) == 1
    engine.dispose()


def test_a_stretch_in_which_nothing_was_scraped_is_filled_from_the_log(settings: Settings) -> None:
    first, last = ms("2026-11-29 20:00:00"), ms("2026-11-29 20:09:00")
    scrape(settings, first, first + 60_000)
    later = Level(metric="requests.running", labels=LABELS, time_ms=last, value=3.0)
    engine = create_store_engine(settings.database)
    target = Target(name="gpu1", base_url="http://gpu1:30000")
    IngestWriter(engine, lambda: NOW).apply(
        Batch(
            collector_id="watch:scraped", sequence=2, target=target, launch_key="scraped",
            observations=(later,),
        )
    )  # fmt: skip
    engine.dispose()
    lines = b"".join(f"[2026-11-29 20:{at:02}:30 TP0] {BODY}\n".encode() for at in range(9))
    store(settings, lines)
    found = tables(settings)
    assert len(found["launch"]) == 1
    labels = {row[0]: row[4] for row in found["series"] if row[3] == "requests.running"}
    of_log = [row[1] for row in found["sample"] if "engine_type" not in labels.get(row[0], "engine_type")]
    minutes = [(time_ms - first) // 60_000 for time_ms in of_log]
    assert minutes == [2, 3, 4, 5, 6, 7]


def test_a_log_from_before_the_scrape_keeps_its_own_launch(settings: Settings) -> None:
    scrape(settings, NOW - 600_000, NOW - 300_000)
    store(settings, CAPTURE)
    found = tables(settings)
    assert len(found["launch"]) == 2
    assert len([row for row in found["event"] if row[4] == "launch"]) == 1


def test_a_launch_of_another_configuration_is_not_taken_for_the_scraped_one(settings: Settings) -> None:
    scrape(settings, speculative=SpeculativeConfig(algorithm="EAGLE3", num_draft_tokens=6))
    store(settings, CAPTURE)
    assert len(tables(settings)["launch"]) == 2


def test_importing_into_a_scraped_server_again_changes_nothing(settings: Settings) -> None:
    scrape(settings)
    store(settings, CAPTURE)
    before = tables(settings)
    store(settings, CAPTURE)
    store(settings, CAPTURE, year=2026)  # another identity of the same log: all of it is read again
    after = tables(settings)
    for table in ("launch", "event", "sample", "sample_1m"):
        assert after[table] == before[table]


def test_a_small_file_that_has_grown_repeats_no_event(settings: Settings) -> None:
    said = (b"server_args=", b"Decode batch", b"Prefill batch")
    lines = [line for line in CAPTURE.splitlines(keepends=True) if any(word in line for word in said)]
    lines.insert(10, b"[2026-11-29 21:31:00 TP0] Scheduler hit an exception: boom\n")
    assert len(b"".join(lines)) < 16_384
    for at in (2, 8, 12, 20, len(lines)):
        store(settings, b"".join(lines[:at]))
    grown = tables(settings)
    kinds = [row[4] for row in grown["event"]]
    assert kinds.count("log_error") == 1
    assert kinds.count("launch") == 1
    assert len(grown["launch"]) == 1
    assert len(grown["collector"]) == 1


def test_a_tiny_file_without_a_dump_that_has_grown_is_still_one_launch(settings: Settings) -> None:
    lines = [f"[2026-11-29 20:00:{at:02} TP0] {BODY}\n".encode() for at in range(30)]
    for at in (1, 2, 5, 30):
        store(settings, b"".join(lines[:at]))
    found = tables(settings)
    assert len(found["launch"]) == 1
    assert len(found["sample"]) == 30 * 7


def test_a_launch_that_began_before_its_first_scrape_is_found_by_its_seed(settings: Settings) -> None:
    scrape(settings, ms("2026-11-29 21:32:00"), END, config={"random_seed": 25419070})
    store(settings, CAPTURE)
    found = tables(settings)
    (launch,) = found["launch"]
    assert launch[3] == ms("2026-11-29 21:29:35")
    of_log = [row for row in found["sample"] if row[1] < ms("2026-11-29 21:31:00")]
    assert of_log
