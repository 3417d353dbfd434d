"""Alive, ready, and the product's own metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, T0, Feed, growth

from specscope_collectors.observations import Batch, HealthState, Launch, SourceHealth, Target
from specscope_server.app import create_app
from specscope_server.ingest.service import MeteredSink
from specscope_server.kit.errors import Unavailable
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.settings import Settings
from specscope_server.store import migrate
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter


def test_alive_and_ready(web: Web) -> None:
    assert web.get("/healthz").json() == {"alive": True}
    answer = web.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (200, True)


def test_stopped_collectors_are_not_ready(sqlite_engine: Engine) -> None:
    alive = [True]
    web = Web(create_app(Settings(), engine=sqlite_engine, collectors_alive=lambda: alive[0]))
    assert web.get("/readyz").status_code == 200
    alive[0] = False
    answer = web.get("/readyz")
    assert answer.status_code == 503
    assert "restart" in answer.json()["checks"]["collectors"]


def test_an_old_schema_is_not_ready(tmp_path: Path) -> None:
    engine = create_store_engine(f"sqlite:///{tmp_path / 'new.db'}")
    answer = Web(create_app(Settings(), engine=engine)).get("/readyz")
    engine.dispose()
    assert answer.status_code == 503
    assert "specscope db upgrade" in answer.json()["checks"]["migrated"]


def test_starting_upgrades_a_sqlite_file_and_keeps_retention(tmp_path: Path) -> None:
    engine = create_store_engine(f"sqlite:///{tmp_path / 'new.db'}")
    app = create_app(Settings(), engine=engine)

    async def cycle() -> bool:
        async with app.router.lifespan_context(app):
            return migrate.is_current(engine)

    assert asyncio.run(cycle())
    engine.dispose()


@pytest.mark.postgres
def test_starting_does_not_upgrade_a_shared_database_unless_told(postgres_engine: Engine) -> None:
    migrate.downgrade(postgres_engine, "base")

    async def start(settings: Settings) -> None:
        app = create_app(settings, engine=postgres_engine)
        async with app.router.lifespan_context(app):
            pass

    with pytest.raises(Unavailable, match="run specscope db upgrade, or start with --migrate"):
        asyncio.run(start(Settings()))
    asyncio.run(start(Settings(migrate=True)))
    assert migrate.is_current(postgres_engine)


def samples(text: str) -> dict[tuple[str, ...], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[(sample.name, *sample.labels.values())] = sample.value
    return found


def test_the_products_own_metrics_count_ingest_scrapes_and_requests(sqlite_engine: Engine) -> None:
    telemetry = Telemetry()
    sink = MeteredSink(IngestWriter(sqlite_engine, lambda: NOW), telemetry)
    health = SourceHealth(
        source="s", time_ms=T0, state=HealthState.TIMEOUT, url="http://a", duration_seconds=1
    )
    batch = Batch(
        collector_id="c", sequence=1, target=Target(name="a", base_url="http://a"), launch_key="k",
        observations=(
            Launch(key="k", time_ms=T0, engine="sglang"),
            growth("tokens.generated", 5, T0 + SCRAPE_MS),
            growth("tokens.generated", -5, T0 + 2 * SCRAPE_MS),
            health,
        ),
    )  # fmt: skip
    sink.apply(batch)
    sink.apply(batch)
    assert sink.resume("c").sequence == 1
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW, telemetry=telemetry))
    web.get("/api/v1/servers")
    web.get("/etc/passwd")
    found = samples(web.get("/metrics").text)
    assert found["specscope_ingest_samples_total", "scalar"] >= 1
    assert found["specscope_ingest_refused_total", "negative_increment"] == 1
    assert found["specscope_ingest_batches_total", "applied"] == 1
    assert found["specscope_ingest_batches_total", "repeated"] == 1
    assert found["specscope_scrapes_total", "s", "timeout"] == 1
    assert found["specscope_http_request_duration_seconds_count", "GET", "/api/v1/servers", "200"] == 1
    assert found["specscope_http_request_duration_seconds_count", "GET", "(none)", "404"] == 1
    assert found["specscope_database_bytes",] > 0


def test_a_failing_store_counts_as_failed(sqlite_engine: Engine) -> None:
    telemetry = Telemetry()
    sink = MeteredSink(IngestWriter(sqlite_engine, lambda: NOW), telemetry)
    migrate.downgrade(sqlite_engine, "base")
    with pytest.raises(Exception, match="no such table"):
        Feed(sink).launch()  # type: ignore[arg-type]
    web = Web(create_app(Settings(), engine=sqlite_engine, telemetry=telemetry))
    assert samples(web.get("/metrics").text)["specscope_ingest_batches_total", "failed"] == 1
