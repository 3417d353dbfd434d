"""Whose series are added up: a draft engine beside the target never, several schedulers always."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, growth, rank_labels

from specscope_collectors.observations import Level, Observation

WINDOW = {"from_": str(T0), "to": str(T0 + 300_000)}


def engine(index: int, labels: dict[str, str], times: float = 1.0, **gauges: float) -> list[Observation]:
    """What one scrape reads of one engine: counters that grow ``times`` as fast as the target's."""
    time_ms = T0 + index * SCRAPE_MS
    names = {"running": "requests.running", "tau": "spec.accept_length", "width": "spec.num_draft_tokens"}
    tokenizer = {name: value for name, value in labels.items() if not name.endswith("_rank")}
    return [
        growth("tokens.decoded", 1250 * times, time_ms, labels),
        growth("tokens.generated", 1260 * times, time_ms, tokenizer),
        growth("requests.finished", 10 * times, time_ms, tokenizer),
        growth("spec.verify_calls", 500 * times, time_ms, tokenizer),
        *(
            Level(metric=names[name], labels=labels, time_ms=time_ms, value=value)
            for name, value in gauges.items()
        ),
    ]


def summary(web: Web) -> dict[str, Any]:
    found = web.api("/acceptance/summary", server=SERVER, **WINDOW)
    assert isinstance(found, dict)
    return found


TARGET = {**rank_labels(), "engine_type": "unified"}


@pytest.mark.parametrize(
    "other", [{"model_name": "draft"}, {"model_name": "someone-else"}, {"engine_type": "draft"}]
)
def test_a_draft_engine_is_not_added_to_the_target(web: Web, feed: Feed, other: dict[str, str]) -> None:
    feed.launch()
    for index in range(1, 41):
        feed.send(
            *engine(index, {**TARGET, **other}, 3.0, running=4, tau=1.0, width=6),
            *engine(index, TARGET, running=4, tau=2.5, width=4),
        )
    found = summary(web)
    assert found["requests_running"]["value"] == 4
    assert found["accept_length"]["value"] == pytest.approx(2.5)
    assert found["num_draft_tokens"]["value"] == 4
    counts = found["counts"]
    assert (counts["decoded_tokens"], counts["generated_tokens"]) == (40 * 1250, 40 * 1260)
    assert "left out" in found["evidence_note"]
    asked = {"server": SERVER, "metric": "tokens.decoded", "step": "5m", "stat": "sum", **WINDOW}
    for aggregate in ("ranks", "server"):
        (line,) = web.api("/series/query", **asked, aggregate=aggregate)["series"]
        assert line["values"] == [40 * 1250]
    assert len(web.api("/series/query", **asked, aggregate="none")["series"]) == 2
    only = web.api("/series/query", **asked, label=next(f"{name}={value}" for name, value in other.items()))
    assert [line["values"] for line in only["series"]] == [[3 * 40 * 1250]]


def test_series_under_another_name_than_the_launch_says_are_used_and_said(web: Web, feed: Feed) -> None:
    feed.launch()
    for index in range(1, 41):
        feed.send(*engine(index, {**TARGET, "model_name": "alias"}, running=4, tau=2.5, width=4))
    found = summary(web)
    assert found["requests_running"]["value"] == 4
    assert "No series carries the launch's model 'llama'; 'alias' is used" in found["evidence_note"]


def test_workers_behind_a_router_add_up_in_gauges_as_in_counters(web: Web, feed: Feed) -> None:
    feed.launch()
    for index in range(1, 41):
        for worker, tau in (("http://a:1", 2.0), ("http://b:1", 3.0)):
            feed.send(
                *engine(index, {**TARGET, "worker_addr": worker}, running=4, tau=tau, width=4),
                *engine(index, {**TARGET, "worker_addr": worker, "tp_rank": "1"}, running=4, tau=tau),
            )
    found = summary(web)
    assert found["requests_running"]["value"] == 8
    assert found["counts"]["decoded_tokens"] == 2 * 40 * 1250
    points = web.api("/acceptance/trend", server=SERVER, step="1m", **WINDOW)["points"]
    assert points[1]["requests_running"] == 8
    assert points[1]["num_draft_tokens"] == 4
    ranks = next(check for check in found["checks"] if check["name"] == "every expected rank reports")
    assert (ranks["passed"], ranks["message"]) == (True, "1/1 rank")


def test_workers_with_different_widths_have_no_common_width(web: Web, feed: Feed) -> None:
    feed.launch()
    for index in range(1, 13):
        for worker, width in (("http://a:1", 4), ("http://b:1", 6)):
            feed.send(*engine(index, {**TARGET, "worker_addr": worker}, running=4, tau=2.0, width=width))
    points = web.api("/acceptance/trend", server=SERVER, step="1m", **WINDOW)["points"]
    assert points[0]["num_draft_tokens"] is None
    assert points[0]["accept_length"] is not None


def test_two_sources_of_one_scheduler_are_one_scheduler(web: Web, feed: Feed) -> None:
    """Before the engine's first log window /v1/loads gives what /metrics gives later, with fewer labels."""
    feed.launch()
    feed.send(Level(metric="requests.running", labels={"model_name": "llama"}, time_ms=T0 + 9_000, value=4))
    feed.send(Level(metric="requests.running", labels=TARGET, time_ms=T0 + 9_500, value=4))
    points = web.api("/acceptance/trend", server=SERVER, step="1m", **WINDOW)["points"]
    assert points[0]["requests_running"] == 4
