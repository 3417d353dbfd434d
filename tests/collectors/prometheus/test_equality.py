"""What is taken from a real Prometheus equals what our own scrape at the same times stored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collectors.prometheus.recorded import (
    INSTANCE,
    LABELS,
    measured,
    night,
    read,
    scraped_by_us,
    stored_by_prometheus,
    sums,
)
from tests.collectors.runner.engine import MemorySink
from tests.support.prometheus import Prometheus, need_prometheus, running

from specscope_collectors.observations import HealthState, Level
from specscope_collectors.sources.prometheus.job import Config


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_every_scrape_is_stored_as_our_own_scrape_stores_it(tmp_path: Path, version: str) -> None:
    need_prometheus()
    scraped = night(2_400, speed=4, version=version)
    ours, theirs = scraped_by_us(scraped), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h", raw="7h"))
    assert {batch.target.name for batch in theirs.batches} == {INSTANCE}
    own, other = measured(ours), measured(theirs)
    assert len(own) > 5_000
    assert own == other
    assert [(each.time_ms, each.reason, each.engine_version) for each in theirs.launches()] == [
        (each.time_ms, each.reason, each.engine_version) for each in ours.launches()
    ]
    assert len(ours.launches()) >= 4
    assert theirs.health("prometheus").state is HealthState.OK


@pytest.fixture(scope="module")
def long_night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemorySink, Prometheus]]:
    """Return what our own scrape stored of ninety minutes, and a Prometheus that holds them."""
    need_prometheus()
    scraped = night(5_400, speed=2)
    with running(tmp_path_factory.mktemp("night"), stored_by_prometheus(scraped)) as prometheus:
        yield scraped_by_us(scraped), prometheus


@pytest.mark.xdist_group("long night of a Prometheus")
@pytest.mark.parametrize("step", ["1m", "5m", "10m"])
def test_sums_on_a_coarse_grid_are_exact(step: str, long_night: tuple[MemorySink, Prometheus]) -> None:
    """Restarts, and label sets that come and go, included; the history has no staleness markers."""
    (ours, prometheus), theirs = long_night, MemorySink()
    read(theirs, Config(url=prometheus.url, back_fill="7h", raw="10m", step=step))
    own, other = sums(ours), sums(theirs)
    assert own.keys() == other.keys()
    for key, value in own.items():
        assert math.isclose(other[key], value, rel_tol=1e-9, abs_tol=1e-9), key
    assert [each.time_ms for each in theirs.launches()] == [each.time_ms for each in ours.launches()]
    assert len(measured(theirs)) < len(measured(ours))


def test_the_scrapers_labels_stand_at_the_launch_and_not_at_the_series(tmp_path: Path) -> None:
    need_prometheus()
    scraped, theirs = night(120), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h", raw="7h"))
    (launch,) = theirs.launches()
    assert launch.environment == {f"prometheus.{name}": value for name, value in LABELS.items()}
    assert launch.is_demo
    assert launch.served_model_name == "Kimi-K2.5 (demo)"
    labels = {name for _, _, pairs, _ in measured(theirs) for name, _ in pairs}
    assert not labels & LABELS.keys()
    assert {"tp_rank", "model_name"} <= labels


def test_two_replicas_of_a_prometheus_are_one_server(tmp_path: Path) -> None:
    need_prometheus()
    scraped, theirs = night(600, speed=1), MemorySink()
    late = [(time_ms + 2_000, body) for time_ms, body in scraped]
    lines = [
        *stored_by_prometheus(scraped, LABELS | {"replica": "a"}),
        *stored_by_prometheus(late, LABELS | {"replica": "b"}),
    ]
    with running(tmp_path, lines) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h", raw="7h"))
    assert measured(theirs) == measured(scraped_by_us(scraped))
    assert "left out" in theirs.health("prometheus").detail


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    need_prometheus()
    scraped, theirs = night(1_200, speed=0.5), MemorySink()
    hole = range(scraped[20][0], scraped[60][0])
    kept = [each for each in scraped if each[0] not in hole]
    with running(tmp_path, stored_by_prometheus(kept)) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h", raw="7h"))
    assert not [key for key in measured(theirs) if key[3] in hole]
    assert measured(theirs) == measured(scraped_by_us(kept))
    spans = {each.span_ms for each in theirs.all_increments("tokens.generated")}
    assert spans == {15_000, 41 * 15_000}


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    need_prometheus()
    scraped = night(300)
    lines = [
        *stored_by_prometheus(scraped),
        *stored_by_prometheus(scraped, LABELS | {"instance": "gpu2:30000", "cluster": "b"}),
    ]
    with running(tmp_path, lines) as prometheus:
        for config, expected in (
            (Config(url=prometheus.url, back_fill="7h"), {INSTANCE, "gpu2:30000"}),
            (Config(url=prometheus.url, back_fill="7h", match=('cluster="b"',)), {"gpu2:30000"}),
            (Config(url=prometheus.url, back_fill="7h", servers=(INSTANCE,)), {INSTANCE}),
            (
                Config(url=prometheus.url, back_fill="7h", server_label="cluster", server_name="c-{value}"),
                {"c-a", "c-b"},
            ),
        ):
            sink = MemorySink()
            read(sink, config)
            assert {batch.target.name for batch in sink.batches} == expected
            assert [each for each in sink.all(Level) if each.metric == "requests.running"]
