"""A Prometheus that scrapes a running demo engine is followed, and what comes in is exact."""

from __future__ import annotations

import time
from pathlib import Path

from tests.collectors.prometheus.recorded import read
from tests.collectors.runner.engine import MemorySink
from tests.demo.processes import answers, eventually, specscope
from tests.support.prometheus import Prometheus, need_prometheus, running
from tests.support.rig import free_port

from specscope_collectors.observations import HealthState
from specscope_collectors.sources.prometheus.job import Config

NAME = "sglang:generation_tokens_total"
METRIC = "tokens.generated"
SCRAPES = 5


def raw(prometheus: Prometheus, from_ms: int, to_ms: int) -> list[tuple[int, float]]:
    """Return (time, sum over series) of the counter as Prometheus has stored it, within the times."""
    total: dict[int, float] = {}
    for series in prometheus.ask(f"{NAME}[10m]", to_ms):
        for seconds, text in series["values"]:
            time_ms = round(seconds * 1000)
            if from_ms <= time_ms <= to_ms:
                total[time_ms] = total.get(time_ms, 0.0) + float(text)
    return sorted(total.items())


def test_a_live_prometheus_is_followed_through_a_crash(tmp_path: Path) -> None:
    need_prometheus()
    port, sink = free_port(), MemorySink()
    address = f"127.0.0.1:{port}"
    with specscope("demo-engine", "--port", str(port), "--speed", "0.5", cwd=tmp_path):
        eventually(lambda: answers(f"http://{address}/metrics"), "the demo engine answers")
        with running(tmp_path, scrape=address) as prometheus:
            config = Config(url=prometheus.url, back_fill="10m", raw="10m", lag="1s")

            def followed(count: int) -> bool:
                read(sink, config)
                return len(sink.all_increments(METRIC)) >= count

            eventually(lambda: followed(SCRAPES), "the first scrapes are followed")
            prometheus.kill()
            read(sink, config)
            assert sink.health("prometheus").state is HealthState.UNREACHABLE
            prometheus.start()
            eventually(lambda: followed(2 * SCRAPES), "the scrapes after the crash are followed")
            found = sink.all_increments(METRIC)
            first_ms, last_ms = found[0].time_ms - found[0].span_ms, found[-1].time_ms
            stored = raw(prometheus, first_ms, last_ms)
    if stored[0][0] == found[0].time_ms:  # the counter came with the first request: it grew from 0
        stored.insert(0, (first_ms, 0.0))
    assert [each.time_ms for each in found] == [time_ms for time_ms, _ in stored[1:]]
    assert sum(each.value for each in found) == stored[-1][1] - stored[0][1]
    assert sink.total(METRIC) > 0
    (launch,) = sink.launches()
    assert launch.environment == {"prometheus.instance": address, "prometheus.job": "sglang"}
    assert {batch.target.name for batch in sink.batches if batch.launch_key} == {address}
    assert sink.health("prometheus").time_ms <= time.time() * 1000
