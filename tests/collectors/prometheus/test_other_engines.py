"""The same from a VictoriaMetrics, and of a vLLM: other answers, other names, equal values."""

from __future__ import annotations

import math
from pathlib import Path

from tests.collectors.prometheus.recorded import (
    EVERY_MS,
    Scraped,
    measured,
    night,
    read,
    scraped_by_us,
    stored_by_prometheus,
    sums,
)
from tests.collectors.runner.engine import MemorySink
from tests.support.prometheus import need_prometheus, running, victoria_metrics
from tests.support.vllm import VllmEngine

from specscope_collectors.clock import system_clock
from specscope_collectors.observations import HealthState
from specscope_collectors.sources.prometheus.job import Config

DIGITS = 1e-9
"""VictoriaMetrics keeps some 12 digits of a value."""


def test_victoriametrics_gives_the_same(tmp_path: Path) -> None:
    scraped = night(2_700, speed=2)
    ours = scraped_by_us(scraped)
    with victoria_metrics(tmp_path, stored_by_prometheus(scraped)) as url:
        for raw in ("7h", "10m"):
            theirs = MemorySink()
            read(theirs, Config(url=url, back_fill="7h", raw=raw))
            assert theirs.health("prometheus").state is HealthState.OK
            own, other = sums(ours), sums(theirs)
            assert own.keys() == other.keys()
            for key, value in own.items():
                assert math.isclose(other[key], value, rel_tol=DIGITS, abs_tol=DIGITS), (raw, key)
            assert [each.time_ms for each in theirs.launches()] == [each.time_ms for each in ours.launches()]
            assert (measured(theirs).keys() == measured(ours).keys()) is (raw == "7h")


def a_vllm() -> list[Scraped]:
    """Return what a vLLM says that is restarted once, two scrapes long away."""
    engine, begin_ms, found = VllmEngine(), system_clock() // 1000 * 1000 - 3_600_000, []
    for count in range(40):
        engine.serve(5, seed=count)
        if count == 20:
            engine.restart()
        is_away = count in (19, 20)
        found.append((begin_ms + count * EVERY_MS, None if is_away else engine.metrics().decode()))
    return found


def test_a_vllm_is_read_as_we_read_it(tmp_path: Path) -> None:
    need_prometheus()
    scraped = a_vllm()
    ours, theirs = scraped_by_us(scraped), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="2h", raw="2h"))
    own = measured(ours)
    assert {"spec.cycles", "requests.running"} <= {metric for _, metric, _, _ in own}
    assert measured(theirs) == own
    assert [(each.engine, each.reason, each.time_ms) for each in theirs.launches()] == [
        (each.engine, each.reason, each.time_ms) for each in ours.launches()
    ]
    assert [each.reason for each in theirs.launches()] == ["first seen", "restarted"]
